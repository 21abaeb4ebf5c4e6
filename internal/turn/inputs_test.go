package turn

import (
	"math/rand/v2"

	p "github.com/fermata-agent/fermata/protocol"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// step lets something happen: mostly what could, sometimes what could not.
func (w *walk) step() {
	switch k := w.r.IntN(100); {
	case k < 3:
		w.crash()
	case k < 5 && w.state.Active:
		w.stopNow()
	case k < 15 && w.state.any(running):
		_ = w.happen(Keep{*kept(0, pick(w.r, w.state.OpenCalls()...))}) // it may not be the one that runs
	case k < 19 && w.state.any(running):
		_ = w.happen(Elicit{p.ElicitationRequested{Call: pick(w.r, w.state.OpenCalls()...), Server: "s", Message: "who?"}})
	case k < 23 && len(w.state.Returned) > 0:
		_ = w.happen(w.resolve()) // it may name others as well
	case !w.state.Active && k < 40:
		w.happenOK(pick[Input](w.r, Next{}, Next{}, Next{}, Next{}, Next{}, ReturnAll{}))
	case k < 22, !w.state.Active && k < 90:
		in := w.op()
		err := w.happen(in)
		if _, ok := in.(Approval); ok && err == nil && w.r.IntN(5) == 0 {
			w.crash() // the answer is recorded, what follows from it perhaps not
		}
	case k < 55, k < 85 && w.state.Streaming:
		w.happenOK(w.model())
	default:
		w.happenOK(w.worker())
	}
}

// op is what a client might ask, which may be refused.
func (w *walk) op() Input {
	texts := [][]p.Content{p.Text("a"), p.Text("b"), {{Type: p.ContentImage, ImageURL: "data:,"}}, nil}
	input := p.InputID(int(w.state.LastInput) - w.r.IntN(3))
	switch w.r.IntN(18) {
	case 16, 17:
		return Elicited{p.AnswerElicitation{
			Call: w.someCall(), Number: 1 + w.r.IntN(2), Action: pick(w.r, p.ElicitationAccept, p.ElicitationDecline, p.ElicitationCancel, "maybe"),
		}}
	case 0:
		return pick[Input](w.r, Compact{}, TryNow{}, TryNow{})
	case 12:
		return Shell{Command: pick(w.r, "ls", "ls", "")}
	case 13, 14, 15:
		return Keep{*kept(w.r.IntN(3), w.someCall())}
	case 1:
		return Edit{Input: input, Content: pick(w.r, texts...)}
	case 2:
		return Delete{Input: input}
	case 3:
		return Stop{
			Turn:   pick(w.r, 0, 0, w.state.Turn, w.state.Turn, w.state.Turn+1),
			Reason: pick(w.r, "", p.Interrupted, p.Replaced, p.Failed, p.Completed, "bored"),
			Error:  pick(w.r, nil, nil, &p.Error{Kind: p.ErrorJournal, Message: "disk full"}),
		}
	case 4, 5, 6:
		return Approval{
			Call:     w.someCall(),
			Decision: pick(w.r, p.Approved, p.Approved, p.ApprovedForSession, p.Denied, p.Abort, p.Cancelled, "maybe"),
			Message:  pick(w.r, "", "please"),
		}
	}
	return User{Content: pick(w.r, texts...), WhenBusy: pick(w.r, "", p.Steer, p.Steer, p.Queue, p.Queue, p.Replace)}
}

// resolve is something that a client does with returned messages.
func (w *walk) resolve() Input {
	if w.r.IntN(2) == 0 {
		return Resolve{Inputs: w.someReturned(), As: pick(w.r, p.ResolvedTaken, p.ResolvedDropped, p.ResolvedTaken, p.ResolvedDropped, p.ResolvedSent)}
	}
	return User{Content: pick(w.r, p.Text("again"), nil), WhenBusy: pick(w.r, "", p.Queue, p.Replace), Returned: w.someReturned()}
}

// someReturned are mostly messages that are returned.
func (w *walk) someReturned() []p.InputID {
	ids := inputsOf(w.state.Returned)
	if len(ids) > 0 && w.r.IntN(6) > 0 {
		return ids[w.r.IntN(len(ids)):]
	}
	return append(ids, p.InputID(w.r.IntN(5)))
}

// response is mostly the one that runs.
func (w *walk) response() int {
	return w.state.Response + pick(w.r, 0, 0, 0, 0, 0, 0, -1, 1)
}

// model is something that the model does.
func (w *walk) model() Input {
	if w.r.IntN(4) == 0 {
		return ModelDone{Response: w.response(), Error: w.fault(), Summary: pick(w.r, "", " ", "gist", "gist"), Open: w.partials(), Refused: w.known()}
	}
	return ModelItem{Response: w.response(), Index: pick(w.r, len(w.state.Items), len(w.state.Items), len(w.state.Items), w.r.IntN(6)), Body: w.item()}
}

func (w *walk) item() p.Body {
	switch w.r.IntN(10) {
	case 0:
		return &p.Reasoning{Text: "hm"}
	case 1, 2:
		return &p.AssistantMessage{Text: pick(w.r, "", " ", "said")}
	case 3:
		return pick[p.Body](w.r, &p.Notice{}, nil)
	}
	return &p.ToolCall{
		WireID: pick(w.r, "", "w0", "w1"),
		Name:   pick(w.r, "work", "look", "look too", "look", "ask", "type 1", "type 2"),
	}
}

// fault is how a response fails, if it does.
func (w *walk) fault() *p.Error {
	switch w.r.IntN(8) {
	case 0, 1:
		return broken()
	case 4:
		return pick(w.r, &p.Error{Kind: p.ErrorUsageLimit}, &p.Error{Kind: p.ErrorHistory, Part: pick(w.r, p.PartReasoning, p.PartImages)})
	case 2:
		return &p.Error{Kind: p.ErrorHistory, Retry: w.r.IntN(4) == 0, Call: &p.CallFault{
			WireID: pick(w.r, "w0", "w1"), Fault: pick(w.r, p.CallWithoutOutput, p.OutputTwice, p.OutputWithoutCall),
		}}
	case 3:
		return &p.Error{Kind: pick(w.r, p.ErrorAuth, p.ErrorContextLength)}
	}
	return nil
}

// known is what the history would say of a call that is complained about: all
// are answered but those of the response that runs.
func (w *walk) known() *Refused {
	open := w.state.OpenCalls()
	switch {
	case w.r.IntN(2) == 0:
		return nil
	case len(open) > 0:
		return &Refused{Call: pick(w.r, open...)}
	}
	return &Refused{Call: id(int(w.state.Turn), max(0, w.state.Response-1), 0), Answered: true}
}

func (w *walk) partials() []Partial {
	var open []Partial
	for range w.r.IntN(3) {
		open = append(open, Partial{
			Item: p.ItemID{Turn: w.state.Turn + pick[p.TurnID](w.r, 0, 0, 0, 0, -1), Response: w.response(), Index: w.r.IntN(6)},
			Kind: pick(w.r, p.DeltaMessage, p.DeltaMessage, p.DeltaReasoning, p.DeltaStdout),
			Text: pick(w.r, "", "hal", "half"),
		})
	}
	for range w.r.IntN(2) {
		item := p.BackgroundID(1 + w.r.IntN(int(w.state.LastBackground)+1)).Item()
		open = append(open, Partial{Item: item, Kind: p.DeltaStdout, Text: "printed", Stderr: [][2]int{{1, 3}}})
	}
	return open
}

// background is mostly a command that runs.
func (w *walk) background() p.BackgroundID {
	if len(w.state.Background) > 0 && w.r.IntN(6) > 0 {
		return pick(w.r, w.state.Background...).ID
	}
	return p.BackgroundID(w.r.IntN(int(w.state.LastBackground) + 2))
}

// someCall is mostly one that is open.
func (w *walk) someCall() p.CallID {
	switch k := w.r.IntN(8); {
	case k < 3 && len(w.state.PendingApprovals()) > 0:
		return pick(w.r, w.state.PendingApprovals()...)
	case k < 7 && len(w.state.OpenCalls()) > 0:
		return pick(w.r, w.state.OpenCalls()...)
	}
	return p.CallID{Turn: w.state.Turn, Response: max(1, w.response()), Index: w.r.IntN(6)}
}

func (w *walk) backgroundDone(id p.BackgroundID) Input {
	return BackgroundDone{ID: id, Stopped: w.r.IntN(2) == 0, Result: p.CommandResult{Output: "printed", Killed: w.r.IntN(3)}}
}

// worker is something that a tool, or a timer, reports.
func (w *walk) worker() Input {
	switch w.r.IntN(14) {
	case 0, 1:
		return RetryDue{}
	case 2:
		return Lost{Killed: w.r.IntN(3), Open: w.partials(), All: w.r.IntN(3) == 0}
	case 12, 13:
		return w.backgroundDone(w.background())
	case 3, 4, 5, 6:
		return ToolAsked{Request: p.ApprovalRequested{Call: w.someCall(), Kind: p.ApproveCommand}}
	}
	out := p.ToolOutput{Call: w.someCall(), Output: "x", Aborted: w.state.Stopping() && w.r.IntN(2) == 0}
	if w.r.IntN(2) == 0 {
		out.Command = &p.CommandResult{Killed: w.r.IntN(3)}
	}
	return ToolDone{Output: out, NotRun: w.state.Stopping() && w.r.IntN(4) == 0}
}
