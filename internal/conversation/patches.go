package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-agent/fermata/internal/fold"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// settle completes or takes back the patches that a crash interrupted. The outcome
// of those whose calls are open goes into lost, and from there into their outputs;
// for the others it returns the events that record it.
func (o *owner) settle(lost *turn.Lost) []p.Body {
	if o.cfg.Settle == nil {
		return nil
	}
	var events []p.Body
	lost.Patches = map[p.CallID]p.PatchResult{}
	for _, op := range o.state.Patches {
		open := slices.Contains(o.state.OpenCalls(), op.Call)
		applied, note, err := o.cfg.Settle(op.Record, op.Committed)
		if err != nil {
			o.recovered = append(o.recovered, fmt.Sprintf("%s could not be settled: %v", patchName(op), err))
			if open {
				lost.Patches[op.Call] = p.PatchResult{Unsettled: true}
			}
			continue
		}
		o.recovered = append(o.recovered, patchName(op)+" was interrupted: "+outcome(applied, note))
		switch {
		case open:
			lost.Patches[op.Call] = p.PatchResult{Applied: applied, Summary: note}
		case op.Undoes != 0 && applied:
			events = append(events, &p.Undone{Of: op.Undoes, Patch: op.Patch, Files: patchFiles(op)})
		default:
			events = append(events, &p.PatchSettled{Patch: op.Patch, Call: op.Call, Applied: applied})
		}
	}
	return events
}

func patchName(op fold.OpenPatch) string {
	if op.Undoes != 0 {
		return fmt.Sprintf("the undo of turn %d", op.Undoes)
	}
	return fmt.Sprintf("the patch of call %s", op.Call)
}

// patchFiles returns the files that the patch changes.
func patchFiles(op fold.OpenPatch) []string {
	var changes map[string]json.RawMessage
	_ = json.Unmarshal(op.Changes, &changes) // only for people: without the names it is as true
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
