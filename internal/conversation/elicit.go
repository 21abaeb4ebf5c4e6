package conversation

import (
	"context"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// An elicitation is something that a call asks the person while it runs.
type elicitation struct {
	request p.ElicitationRequested
	answer  chan elicited // has room for one
	number  int           // given and used by the owner only
}

type elicited struct {
	resolved p.ElicitationResolved
	err      error
}

type elicitationID struct {
	call   p.CallID
	number int
}

// reply answers, unless that was done before.
func (e *elicitation) reply(a elicited) {
	select {
	case e.answer <- a:
	default:
	}
}

// elicit records a question. Its answer is sent when that is durable.
func (o *owner) elicit(e *elicitation) {
	if e.number != 0 { // the tool gives up waiting
		_ = o.stepErr(turn.Elicited{Answer: p.AnswerElicitation{Call: e.request.Call, Number: e.number, Action: p.ElicitationCancel}}) // it may be answered by now
		return
	}
	if err := o.stepErr(turn.Elicit{Request: e.request}); err != nil {
		e.reply(elicited{err: err})
		return
	}
	if o.elicitations == nil {
		o.elicitations = map[elicitationID]*elicitation{}
	}
	e.number = o.state.Elicited(e.request.Call)
	o.elicitations[elicitationID{e.request.Call, e.number}] = e
}

// elicited passes an answer on to the call that waits for it, if it still does.
func (o *owner) elicited(b p.ElicitationResolved) {
	id := elicitationID{b.Call, b.Number}
	if e := o.elicitations[id]; e != nil {
		delete(o.elicitations, id)
		e.reply(elicited{resolved: b})
	}
}

// Elicit asks the person something and waits for the answer. If ctx ends first, the
// question is cancelled.
func (h *host) Elicit(ctx context.Context, request p.ElicitationRequested) (p.ElicitationResolved, error) {
	request.Call = h.call
	e := &elicitation{request: request, answer: make(chan elicited, 1)}
	if !h.conv.send(message{turn: h.call.Turn, elicit: e}) {
		return p.ElicitationResolved{}, ErrClosed
	}
	select {
	case a := <-e.answer:
		return a.resolved, a.err
	case <-h.conv.done:
		return p.ElicitationResolved{}, ErrClosed
	case <-ctx.Done():
		h.conv.send(message{turn: h.call.Turn, elicit: e})
		return p.ElicitationResolved{}, context.Cause(ctx)
	}
}
