package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// An openPatch is a patch that was begun, and whose outcome is not recorded. It
// has one when the record says so, not when its call is answered: a turn that
// gave up waiting for its workers answers calls without knowing.
type openPatch struct {
	*p.PatchStarted
	committed bool
}

// foldPatch takes an event about patches into the state.
func (o *owner) foldPatch(b p.Body) {
	switch b := b.(type) {
	case *p.PatchStarted:
		o.patches = append(o.patches, openPatch{PatchStarted: b})
	case *p.PatchCommitted:
		if i := slices.IndexFunc(o.patches, func(op openPatch) bool { return op.Patch == b.Patch }); i >= 0 {
			o.patches[i].committed = true
		}
	case *p.PatchSettled:
		o.closePatches(func(op openPatch) bool { return op.Patch == b.Patch })
	case *p.Undone:
		o.closePatches(func(op openPatch) bool { return op.Patch == b.Patch })
	case *p.TurnStarted:
		o.kept = nil
	case *p.ToolOutput:
		i := slices.IndexFunc(o.patches, func(op openPatch) bool { return op.Call == b.Call })
		if i >= 0 && b.Patch != nil && b.Patch.Applied {
			o.kept = append(slices.Clip(o.kept), o.patches[i].Back)
		}
		if b.Patch != nil && !b.Patch.Unsettled {
			o.closePatches(func(op openPatch) bool { return op.Call == b.Call })
		}
	}
}

func (o *owner) closePatches(which func(openPatch) bool) {
	o.patches = slices.DeleteFunc(o.patches, which)
}

// settle brings patches that a crash cut short to one side. What became of
// those whose calls are open goes into lost, from where their outputs tell it;
// for the others it returns the events that do.
func (o *owner) settle(lost *turn.Lost) []p.Body {
	if o.cfg.Settle == nil {
		return nil
	}
	var events []p.Body
	lost.Patches = map[p.CallID]p.PatchResult{}
	for _, op := range o.patches {
		open := slices.Contains(o.state.OpenCalls(), op.Call)
		applied, note, err := o.cfg.Settle(op.Record, op.committed)
		if err != nil {
			o.recovered = append(o.recovered, fmt.Sprintf("%s could not be settled: %v", op.name(), err))
			if open {
				lost.Patches[op.Call] = p.PatchResult{Unsettled: true}
			}
			continue
		}
		o.recovered = append(o.recovered, op.name()+" was cut short: "+outcome(applied, note))
		switch {
		case open:
			lost.Patches[op.Call] = p.PatchResult{Applied: applied, Summary: note}
		case op.Undoes != 0 && applied:
			events = append(events, &p.Undone{Of: op.Undoes, Patch: op.Patch, Files: op.files()})
		default:
			events = append(events, &p.PatchSettled{Patch: op.Patch, Call: op.Call, Applied: applied})
		}
	}
	return events
}

func (op openPatch) name() string {
	if op.Undoes != 0 {
		return fmt.Sprintf("the undo of turn %d", op.Undoes)
	}
	return fmt.Sprintf("the patch of call %s", op.Call)
}

// files are those that the patch changes.
func (op openPatch) files() []string {
	var changes map[string]json.RawMessage
	_ = json.Unmarshal(op.Changes, &changes) // only for words: without them it is as true
	return slices.Sorted(maps.Keys(changes))
}

func outcome(applied bool, note string) string {
	text := "nothing of it was applied"
	if applied {
		text = "all of it was applied"
	}
	if note != "" {
		text += " (" + note + ")"
	}
	return text
}

func (o *owner) recordEach(events []p.Body) {
	for _, b := range events {
		o.recordOutsideTurn(b)
	}
}

// errUndo is the answer to an Undo that says nothing.
var errUndo = errors.New("an undo has to say one thing")

// undo records a step of an undo, which the client carries out.
func (o *owner) undo(op p.Undo) error {
	if o.state.Active {
		return turn.ErrBusy
	}
	switch {
	case op.Started != nil:
		o.recordOutsideTurn(op.Started)
	case op.Committed != nil:
		o.recordOutsideTurn(op.Committed)
	case op.Settled != nil:
		o.recordOutsideTurn(op.Settled)
	case op.Done != nil:
		o.recordOutsideTurn(op.Done)
	default:
		return errUndo
	}
	return nil
}
