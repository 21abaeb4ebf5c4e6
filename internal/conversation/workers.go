package conversation

import (
	"context"
	"errors"
	"maps"

	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// work runs f as a worker of the turn, and reports how it ended.
func (o *owner) work(id p.TurnID, f func(ctx context.Context) turn.Input) {
	ctx, conv := o.ctx, o.conv
	go func() { // stopped by ctx, waited for by the turn's end
		conv.send(message{turn: id, input: f(ctx)})
	}()
}

func (c *Conversation) send(m message) bool {
	select {
	case c.inbox <- m:
		return true
	case <-c.done:
		return false
	}
}

// A sink passes on what the model says: text to the journal, items to the owner.
type sink struct {
	conv  *Conversation
	id    p.ItemID
	scope interface {
		Write(item, tag, text string) bool
	}
}

func (s *sink) item(index int) p.ItemID {
	return p.ItemID{Turn: s.id.Turn, Response: s.id.Response, Index: index}
}

func (s *sink) Delta(index int, kind p.DeltaKind, text string) {
	s.scope.Write(s.item(index).String(), string(kind), text)
}

func (s *sink) Done(index int, body p.Body) {
	s.conv.send(message{turn: s.id.Turn, input: turn.ModelItem{Response: s.id.Response, Index: index, Body: body}})
}

// lane says what a call may run beside. One of a tool that is not known yet runs alone.
func (o *owner) lane(c turn.Call) turn.Lane {
	t := tool.Find(o.tools, c.Name)
	switch {
	case t != nil:
		return tool.LaneOf(t, o.call(c))
	case o.await != nil:
		return turn.Alone
	}
	return turn.Beside // the answer is that there is no such tool
}

// call is what a tool is given of a call before it runs.
func (o *owner) call(c turn.Call) tool.Call {
	return tool.Call{
		ID: c.ID, WireID: c.WireID, Name: c.Name, Arguments: c.Arguments, Grants: o.state.Grants, Settings: o.state.TurnSettings,
	}
}

func (o *owner) startTool(b p.CallStarted) {
	asked := o.state.Call(b.Call)
	t, await := tool.Find(o.tools, asked.Name), o.await
	if t == nil && await == nil {
		o.step(turn.ToolDone{Output: p.ToolOutput{Call: b.Call, Failed: true, Output: tool.Unknown(o.tools, asked.Name)}})
		return
	}
	scope := o.journal.Open(b.Call.String())
	call := o.call(asked)
	call.Grant, call.Patches, call.Background, call.Warned = b.Grant, o.state.Applied, maps.Clone(o.background), maps.Clone(o.state.Warned)
	call.Host = &host{o.conv, b.Call, scope}
	if ask := o.state.Request(b.Call); ask != nil {
		call.Asked = ask.Detail
	}
	o.work(b.Call.Turn, func(ctx context.Context) (h turn.Input) {
		defer scope.Seal()
		defer o.guard(func(err *p.Error) {
			h = turn.ToolDone{Output: p.ToolOutput{Call: b.Call, Failed: true, Output: "tool failed: " + err.Message}}
		})
		if t == nil { // the turn waited in another process, which knew it
			if err := await.tools(ctx, o.conv, b.Call.Turn, func() { t = tool.Find(o.tools, asked.Name) }); err != nil || t == nil {
				return turn.ToolDone{Output: p.ToolOutput{Call: b.Call, Failed: true, Output: asked.Name + " is not available"}}
			}
		}
		res := tool.Run(ctx, t, call)
		if res.Ask != nil {
			res.Ask.Call = b.Call
			return turn.ToolAsked{Request: *res.Ask}
		}
		res.Output.Call = b.Call
		return turn.ToolDone{Output: res.Output, Diff: res.Diff}
	})
}

// A host is what a tool sees of its conversation.
type host struct {
	conv  *Conversation
	call  p.CallID
	scope interface {
		Write(item, tag, text string) bool
	}
}

func (h *host) Write(kind p.DeltaKind, text string) {
	h.scope.Write(h.call.String(), string(kind), text)
}

func (h *host) Record(ctx context.Context, body p.Body) error {
	return h.record(ctx, message{record: body})
}

// Warn implements tool.Warner.
func (h *host) Warn(ctx context.Context, note *p.Notice) error {
	return h.record(ctx, message{record: note, once: true})
}

func (h *host) record(ctx context.Context, m message) error {
	durable := make(chan error, 1)
	m.turn, m.durable = h.call.Turn, durable
	if !h.conv.send(m) {
		return ErrClosed
	}
	select {
	case err := <-durable:
		return err
	case <-h.conv.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guard turns a panic of a worker into an error of its turn. The stack is for
// developers: it is not recorded. A worker calls it, so it uses nothing that changes.
func (o *owner) guard(report func(*p.Error)) {
	v := recover()
	if v == nil {
		return
	}
	report(&p.Error{Kind: p.ErrorInternal, Message: o.cfg.Panicked.Caught(v).Error()})
}

// asError makes an error one that can be recorded.
func asError(err error) *p.Error {
	var e *p.Error
	if errors.As(err, &e) {
		return e
	}
	return &p.Error{Kind: p.ErrorModel, Message: err.Error()}
}
