package follow

import (
	"context"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// CatchUp returns what a client needs to know of a turn that began before our message
// joined it, with event last: that it has started, and the calls that are not answered.
// Without it, what their commands print could not be shown.
func CatchUp(ctx context.Context, e engine.Engine, id p.ConversationID, turn p.TurnID, last p.Seq) []p.Event {
	var started []p.Event
	var calls []p.CallID // those that are open, in order
	events := map[p.CallID][]p.Event{}
	for ev, err := range e.Subscribe(ctx, id, 0) {
		if err != nil || ev.Seq > last {
			break
		}
		if ev.Seq > 0 && ev.Turn == turn {
			switch b := ev.Body.(type) {
			case *p.TurnStarted:
				started = append(started, ev)
			case *p.ToolOutput:
				delete(events, b.Call)
			default:
				if call, ok := callOf(b); ok {
					if events[call] == nil {
						calls = append(calls, call)
					}
					events[call] = append(events[call], ev)
				}
			}
		}
		if ev.Seq == last {
			break
		}
	}
	for _, call := range calls {
		started = append(started, events[call]...)
	}
	return started
}

// callOf returns the call that an event says something of.
func callOf(b p.Body) (p.CallID, bool) {
	switch b := b.(type) {
	case *p.ToolCall:
		return b.Call, true
	case *p.CallStarted:
		return b.Call, true
	case *p.CommandStarted:
		return b.Call, true
	case *p.PatchStarted:
		return b.Call, b.Call != (p.CallID{})
	case *p.ServerCallStarted:
		return b.Call, true
	case *p.ApprovalRequested:
		return b.Call, true
	case *p.ApprovalResolved:
		return b.Call, true
	case *p.ElicitationRequested:
		return b.Call, true
	case *p.ElicitationResolved:
		return b.Call, true
	}
	return p.CallID{}, false
}
