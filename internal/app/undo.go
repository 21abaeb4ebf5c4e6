package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Undo is what putting a turn's files back would do.
type Undo struct {
	Turn  p.TurnID
	Files int      // how many would change; 0 if they are what they were
	Diff  string   // what would change
	Notes []string // what will not be put back

	Do func(context.Context) error // puts them back
}

// PlanUndo works out what undoing a turn would do; turn 0 is the last one that
// changed files. Nothing is changed before Do is called.
func PlanUndo(ctx context.Context, e *engine.Local, id p.ConversationID, turn p.TurnID) (*Undo, error) {
	snap, err := e.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	if snap.Active {
		return nil, &Error{
			Err:  fmt.Errorf("turn %d waits for an approval", snap.Turn),
			Hint: fmt.Sprintf("fermata approve %s --deny ends it", id),
		}
	}
	log, err := readChanges(ctx, e, id)
	if err != nil {
		return nil, err
	}
	t, err := log.choose(turn)
	if err != nil {
		return nil, err
	}
	u := &Undo{Turn: t.turn}
	plan, err := u.plan(ctx, t)
	if err != nil {
		return nil, undoRefused(t, log, err)
	}
	u.Files, u.Diff = len(plan.Files), plan.Diff(snap.Settings.Cwd)
	u.Do = func(ctx context.Context) error {
		err := tool.PutBack(ctx, patch.OS{}, plan, t.turn, func(op p.Undo) error {
			_, err := e.Submit(ctx, id, op)
			return err
		})
		if err != nil {
			return fmt.Errorf("undo turn %d: %w", t.turn, err)
		}
		return nil
	}
	return u, nil
}

// plan works out what has to be done: what is in snapshots from those, the rest
// from what the patches kept.
func (u *Undo) plan(ctx context.Context, t *turnChanges) (*patch.Plan, error) {
	if t.trees == nil {
		if t.commands > 0 {
			u.note("turn %d also ran commands; what they changed is not undone", t.turn)
		}
		return tool.TakeBack(patch.OS{}, t.kept, nil)
	}
	dir, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	b, err := snapshots(dir).TakeBack(ctx, *t.trees)
	if err != nil {
		return nil, err
	}
	rest, err := tool.TakeBack(patch.OS{}, t.kept, b.Covered)
	if err != nil {
		return nil, err
	}
	for _, path := range b.Modes {
		u.note("the mode of %s is not put back", path)
	}
	if t.commands > 0 {
		u.note("what the commands of turn %d changed outside %s, or where git ignores it, is not undone", t.turn, t.trees.Root)
	}
	return patch.Combine(b.Plan, rest), nil
}

func (u *Undo) note(format string, args ...any) {
	u.Notes = append(u.Notes, fmt.Sprintf(format, args...))
}

// undoRefused says why nothing is put back.
func undoRefused(t *turnChanges, log *changeLog, err error) error {
	e := &Error{Err: fmt.Errorf("turn %d was not undone: %w", t.turn, err)}
	var stale *tool.ChangedSinceError
	if errors.As(err, &stale) {
		e.Hint = "save or take back what was done to them since, then try again"
		if last := log.last(); last != nil && last.turn > t.turn {
			e.Hint = fmt.Sprintf("turn %d changed files later: undo that one first, if it is the reason", last.turn)
		}
	}
	return e
}

// A changeLog is what the turns of a conversation did to files.
type changeLog struct {
	turns   []*turnChanges // in order; only those that changed files or ran commands
	started map[string]*p.PatchStarted
	byCall  map[p.CallID]*p.PatchStarted
}

type turnChanges struct {
	turn     p.TurnID
	kept     []json.RawMessage // of the patches that were applied, in order
	commands int
	trees    *p.TreeRange // if there are snapshots
	gap      bool         // somebody else may have changed files between two of them
	undone   bool
}

func newChangeLog() *changeLog {
	return &changeLog{started: map[string]*p.PatchStarted{}, byCall: map[p.CallID]*p.PatchStarted{}}
}

func readChanges(ctx context.Context, e *engine.Local, id p.ConversationID) (*changeLog, error) {
	log := newChangeLog()
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		log.apply(ev)
	}
	return log, nil
}

func (l *changeLog) apply(e p.Event) {
	switch b := e.Body.(type) {
	case *p.PatchStarted:
		l.started[b.Patch], l.byCall[b.Call] = b, b
	case *p.ToolOutput:
		if b.Patch != nil && b.Patch.Applied {
			l.applied(l.byCall[b.Call])
		}
	case *p.PatchSettled:
		if b.Applied {
			l.applied(l.started[b.Patch])
		}
	case *p.TurnDiff:
		l.at(e.Turn).picture(b.Trees)
	case *p.CommandStarted:
		l.at(b.Call.Turn).commands++
	case *p.Undone:
		l.at(b.Of).undone = true
	}
}

func (l *changeLog) applied(b *p.PatchStarted) {
	if b == nil || b.Undoes != 0 {
		return
	}
	t := l.at(b.Call.Turn)
	t.kept = append(t.kept, b.Back)
}

// picture takes up the latest pictures of a turn. When the turn was taken up by
// another process while it waited, there are new first ones; if they show what
// the last ones did, nothing happened between.
func (t *turnChanges) picture(now *p.TreeRange) {
	switch {
	case t.trees == nil || now == nil || now.Before == t.trees.Before:
		t.trees = now
	case now.Root == t.trees.Root && now.Before == t.trees.After:
		t.trees = &p.TreeRange{Root: now.Root, Before: t.trees.Before, After: now.After}
	default:
		t.trees, t.gap = now, true
	}
}

// changed reports whether the turn changed files, as far as that is known.
func (t *turnChanges) changed() bool {
	return len(t.kept) > 0 || t.trees != nil && t.trees.Before != t.trees.After
}

// at returns the entry of a turn, adding it if it is new.
func (l *changeLog) at(turn p.TurnID) *turnChanges {
	i := slices.IndexFunc(l.turns, func(t *turnChanges) bool { return t.turn == turn })
	if i < 0 {
		l.turns = append(l.turns, &turnChanges{turn: turn})
		i = len(l.turns) - 1
	}
	return l.turns[i]
}

// last is the last turn that changed files and was not undone, or nil.
func (l *changeLog) last() *turnChanges {
	for _, t := range slices.Backward(l.turns) {
		if t.changed() && !t.undone {
			return t
		}
	}
	return nil
}

// choose finds the turn to undo.
func (l *changeLog) choose(turn p.TurnID) (*turnChanges, error) {
	if turn == 0 {
		last := l.last()
		if last == nil {
			return nil, fmt.Errorf("no turn changed files that could be put back%s", l.why())
		}
		turn = last.turn
	}
	t := l.at(turn)
	switch {
	case t.gap:
		return nil, fmt.Errorf("turn %d cannot be undone: files were changed while it waited for an approval", turn)
	case t.undone:
		return nil, fmt.Errorf("turn %d was undone before", turn)
	case !t.changed() && t.commands > 0 && t.trees == nil:
		return nil, fmt.Errorf("turn %d cannot be undone: it changed no files but by commands, and no snapshot was taken", turn)
	case !t.changed():
		return nil, fmt.Errorf("turn %d changed no files", turn)
	}
	return t, nil
}

// why says what there is that cannot be undone.
func (l *changeLog) why() string {
	if slices.ContainsFunc(l.turns, func(t *turnChanges) bool { return t.commands > 0 && !t.undone }) {
		return "; what commands changed cannot be undone without a snapshot"
	}
	return ""
}
