package transcript

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// TurnChanges is what one turn did to files, as far as that is known.
type TurnChanges struct {
	Turn     p.TurnID
	Patches  []p.Seq      // the PatchStarted of each patch that was applied, in order
	Commands int          // how many it ran
	Trees    *p.TreeRange // snapshots before and after it, if there are any
	Gap      bool         // another program may have changed files between two of its snapshots
	Undone   bool
}

// Changed reports whether the turn changed files.
func (c *TurnChanges) Changed() bool {
	return len(c.Patches) > 0 || c.Trees != nil && c.Trees.Before != c.Trees.After
}

// ChangesOf returns what a turn did to files.
func (t *Transcript) ChangesOf(turn p.TurnID) TurnChanges {
	for _, c := range t.Changes {
		if c.Turn == turn {
			return *c
		}
	}
	return TurnChanges{Turn: turn}
}

// LastChanged returns the last turn that changed files and was not undone, 0 if
// there is none.
func (t *Transcript) LastChanged() p.TurnID {
	for _, c := range slices.Backward(t.Changes) {
		if c.Changed() && !c.Undone {
			return c.Turn
		}
	}
	return 0
}

// A patchStart is where a patch was begun.
type patchStart struct {
	seq  p.Seq
	turn p.TurnID
	undo bool
}

// applyChanges folds what happens to files.
func (t *Transcript) applyChanges(e p.Event) {
	switch b := e.Body.(type) {
	case *p.PatchStarted:
		if t.patches == nil {
			t.patches, t.patchOf = map[string]patchStart{}, map[p.CallID]patchStart{}
		}
		start := patchStart{e.Seq, b.Call.Turn + b.Command.Turn, b.Undoes != 0} // one of the two is set
		t.patches[b.Patch], t.patchOf[b.Call] = start, start
	case *p.ToolOutput:
		if b.Patch != nil && b.Patch.Applied {
			t.patchApplied(t.patchOf[b.Call])
		}
	case *p.PatchSettled:
		if b.Applied {
			t.patchApplied(t.patches[b.Patch])
		}
	case *p.TurnDiff:
		t.changes(e.Turn).snapshot(b.Trees)
	case *p.CommandStarted:
		t.changes(b.Call.Turn).Commands++
	case *p.Undone:
		t.changes(b.Of).Undone = true
	}
}

func (t *Transcript) patchApplied(s patchStart) {
	if s.turn == 0 || s.undo {
		return
	}
	c := t.changes(s.turn)
	c.Patches = append(c.Patches, s.seq)
}

// changes returns the entry of a turn, adding it if it is new.
func (t *Transcript) changes(turn p.TurnID) *TurnChanges {
	for _, c := range slices.Backward(t.Changes) {
		if c.Turn == turn {
			return c
		}
	}
	c := &TurnChanges{Turn: turn}
	t.Changes = append(t.Changes, c)
	return c
}

// snapshot takes up the latest snapshots of a turn. When the turn was resumed by
// another process while it waited, there are new first ones; if they show what the last
// ones did, nothing happened between.
func (c *TurnChanges) snapshot(now *p.TreeRange) {
	switch {
	case c.Trees == nil || now == nil || now.Before == c.Trees.Before:
		c.Trees = now
	case now.Root == c.Trees.Root && now.Before == c.Trees.After:
		c.Trees = &p.TreeRange{Root: now.Root, Before: c.Trees.Before, After: now.After}
	default:
		c.Trees, c.Gap = now, true
	}
}
