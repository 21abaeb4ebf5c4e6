package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// newTool makes a tool of a function with typed arguments.
func newTool[A any](name, title, about string, fn func(context.Context, *jsonrpc.Request, callParams, A) (toolResult, error)) tool {
	takes := reflect.TypeFor[A]()
	unknown := func(arguments json.RawMessage) []string { return jsonrpc.Unknown(arguments, takes) }
	return tool{name, title, about, jsonrpc.SchemaOf(takes), unknown, func(ctx context.Context, r *jsonrpc.Request, in callParams) (toolResult, error) {
		var args A
		if err := jsonrpc.Decode(in.Arguments, &args); err != nil {
			return failed(err.Error()), nil
		}
		return fn(ctx, r, in, args)
	}}
}

type codexArguments struct {
	Prompt string `json:"prompt" doc:"what to do"`
}

func (s *Server) codex(ctx context.Context, r *jsonrpc.Request, in callParams, a codexArguments) (toolResult, error) {
	request, err := in.settings()
	if err != nil {
		return failed(err.Error()), nil
	}
	if a.Prompt == "" { // nothing is begun for nothing
		return failed("prompt is empty"), nil
	}
	c, settings, err := s.create(context.WithoutCancel(ctx), request)
	if err != nil {
		return failed(err.Error()), nil
	}
	t := s.newTurnCall(ctx, r, in, c, settings)
	t.model = settings.Model
	return t.run(p.UserTurn{Content: p.Text(a.Prompt)})
}

// replyNames are the names that a conversation goes by.
type replyNames struct {
	ConversationID string `json:"conversationId,omitempty" doc:"the conversation"`
	ThreadID       string `json:"threadId,omitempty" doc:"the same"`
	SessionID      string `json:"sessionId,omitempty" doc:"the same"`
}

var (
	errNoName    = errors.New("conversationId is missing")
	errManyNames = errors.New("conversationId, threadId and sessionId differ")
)

// name is the one that is given.
func (n replyNames) name() (string, error) {
	name := ""
	for _, s := range []string{n.ConversationID, n.ThreadID, n.SessionID} {
		switch {
		case s == "" || s == name:
		case name != "":
			return "", errManyNames
		default:
			name = s
		}
	}
	if name == "" {
		return "", errNoName
	}
	return name, nil
}

type replyArguments struct {
	replyNames
	Prompt   string     `json:"prompt" doc:"what to do or to know"`
	WhenBusy p.WhenBusy `json:"whenBusy,omitempty" enum:"steer,queue,replace" doc:"what becomes of it while a turn runs, also one that is waiting for approval: steer (join the turn with its next model request), queue (start the next turn) or replace (interrupt the turn); default steer"`
}

func (s *Server) codexReply(ctx context.Context, r *jsonrpc.Request, in callParams, a replyArguments) (toolResult, error) {
	name, err := a.name()
	if err != nil {
		return failed(err.Error()), nil
	}
	c, snap, err := s.find(context.WithoutCancel(ctx), name)
	if err != nil {
		return failed(err.Error()), nil
	}
	t := s.newTurnCall(ctx, r, in, c, snap.Settings)
	return t.run(p.UserTurn{Content: p.Text(a.Prompt), WhenBusy: a.WhenBusy})
}

// A turnCall is a call of codex or codex-reply under way.
type turnCall struct {
	s      *Server
	r      *jsonrpc.Request
	c      *conversation
	model  string          // of a conversation that begins with the call
	ctx    context.Context // ended by a cancel
	life   context.Context // not ended by a cancel: the end of the turn is still reported
	events *event.Translator
	asks   *asker

	progress *progress
	seen     p.Seq    // the last event that it was given
	turn     p.TurnID // the one that events were last about
	mine     bool     // whether those are reported to this call
}

func (s *Server) newTurnCall(ctx context.Context, r *jsonrpc.Request, in callParams, c *conversation, now p.Settings) *turnCall {
	t := &turnCall{s: s, r: r, c: c, progress: s.newProgress(ctx, in), ctx: ctx, life: context.WithoutCancel(ctx), events: event.New(now.ContextWindow)}
	t.asks = newAsker(t.life, c.desk, byCall, t.elicit)
	return t
}

// run submits the message and sees its turn to the end.
func (t *turnCall) run(ut p.UserTurn) (toolResult, error) {
	defer t.asks.close()
	defer t.c.leave(t)
	defer t.progress.beat()()
	taken := func(receipt p.Receipt) {
		reports := false
		switch receipt.State {
		case p.TakenStarted:
			t.c.reports(t, receipt.Turn)
		case p.TakenSteered: // the turn's events stay with the call that has them
			reports = t.c.reports(t, receipt.Turn)
		}
		if t.model != "" { // now no other reply can come before ours
			t.send(p.Event{}, event.Configured(t.c.id, t.model))
		}
		t.r.Release()
		if t.seen = receipt.Seq; reports {
			t.turn, t.mine = receipt.Turn, true
			t.join()
		}
	}
	end, err := engine.RunTurn(t.r.UntilEnd(t.ctx), &submitHook{Engine: t.s.o.Engine, c: t.c, taken: taken, leave: t.life}, t.c.id, ut, t.event)
	if err != nil {
		return failed(err.Error()), nil
	}
	if end.End.Reason != "" { // an answer does not overtake the end of its turn, whoever follows that
		t.c.group.Ended(t.life, end.Turn)
	}
	return t.result(end), nil
}

// join takes over the reports of a turn from its middle on: what its calls are called, and what
// a client must be asked, was said before.
func (t *turnCall) join() {
	t.asks.hold = true
	var missed []event.Msg // what has begun and not ended
	for e, err := range t.s.o.Engine.Subscribe(t.life, t.c.id, 0) {
		if err != nil {
			return // whoever follows the turn is notified as well
		}
		if e.Seq != 0 && e.Seq <= t.seen {
			for _, m := range t.events.Translate(e) {
				missed = begun(missed, m)
			}
			t.asks.event(e)
		}
		if e.Seq >= t.seen {
			break
		}
	}
	for _, m := range missed {
		t.send(p.Event{Turn: t.turn}, m)
	}
	t.asks.resume()
}

// begun returns what has begun and not ended after m: a turn, and the commands and patches in it.
func begun(list []event.Msg, m event.Msg) []event.Msg {
	switch kind := m.Type(); {
	case kind == "task_started", strings.HasSuffix(kind, "_begin"):
		return append(list, m)
	case kind == "task_complete", kind == "turn_aborted":
		return nil
	case strings.HasSuffix(kind, "_end"):
		return slices.DeleteFunc(list, func(old event.Msg) bool { return old["call_id"] == m["call_id"] && old["call_id"] != nil })
	}
	return list
}

// A submitHook is an engine that reports what became of a message before its
// events are followed, and gives them in step with everybody else's.
type submitHook struct {
	engine.Engine
	c     *conversation
	taken func(p.Receipt)
	leave context.Context // ends when the events are to be followed no more

	joined *follow.Follower
	err    error // why it has not joined
}

func (h *submitHook) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	r, err := h.Engine.Submit(ctx, id, op)
	if _, ok := op.(p.UserTurn); ok && err == nil {
		h.joined, h.err = h.c.group.Join(ctx, follow.Options{After: r.Seq, Live: func() {}})
		h.taken(r)
	}
	return r, err
}

func (h *submitHook) Subscribe(ctx context.Context, _ p.ConversationID, _ p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		if h.err != nil {
			yield(p.Event{}, h.err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.leave, cancel)()
		h.joined.Events(ctx)(yield)
	}
}

// event reports an event of the turn to the client.
func (t *turnCall) event(e p.Event) {
	if e.Turn != 0 && (e.Turn != t.turn || !t.mine) {
		t.enter(e)
	}
	t.seen = max(t.seen, e.Seq)
	if !t.mine {
		return
	}
	t.report(e)
	t.asks.event(e)
	if _, ok := e.Body.(*p.TurnEnded); ok { // whoever comes later has nothing to report
		t.c.reported(e.Turn)
	}
}

// enter finds out whether the turn of an event is reported to this call. It may be from the middle on: if
// it was not reported, or the call that did was cancelled and took nothing but its message back.
func (t *turnCall) enter(e p.Event) {
	_, returned := e.Body.(*p.InputReturned) // of a message that need not have been a part of the turn
	t.turn, t.mine = e.Turn, t.c.reporter(e.Turn) == t || !returned && t.c.reports(t, e.Turn)
	if !t.mine {
		return
	}
	if _, ok := e.Body.(*p.TurnStarted); ok {
		t.asks.resume()
		return
	}
	t.join()
}

// reports says whether a call reports a turn. The first call that has to do with the turn does.
func (c *conversation) reports(t *turnCall, turn p.TurnID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.reporters[turn]; ok {
		return first == t
	}
	c.reporters[turn] = t
	return true
}

// reporter returns the call that reports a turn, nil if none does.
func (c *conversation) reporter(turn p.TurnID) *turnCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reporters[turn]
}

// leave lets another call report what t has not reported to the end.
func (c *conversation) leave(t *turnCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.reporters, func(_ p.TurnID, reporter *turnCall) bool { return reporter == t })
}

// reported notes that the end of a turn was reported.
func (c *conversation) reported(turn p.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reporters[turn] = nil
}

func (t *turnCall) report(e p.Event) {
	for _, m := range t.events.Translate(e) {
		t.send(e, m)
	}
}

type eventMeta struct {
	RequestID      json.RawMessage  `json:"requestId"`
	ConversationID p.ConversationID `json:"conversationId"`
	Seq            p.Seq            `json:"seq,omitempty"`
}

type eventParams struct {
	Meta *eventMeta `json:"_meta,omitempty"`
	ID   string     `json:"id"`
	Msg  event.Msg  `json:"msg"`
}

// send sends the client one message, twice: older clients wait for the bare type. If the client
// streams the conversation it has got that from the stream.
// A client that does not read is waited for here, which holds up no other client.
func (t *turnCall) send(e p.Event, m event.Msg) {
	params := eventParams{&eventMeta{t.r.ID, t.c.id, e.Seq}, eventID(e), m}
	_ = t.s.conn.Notify(t.life, "codex/event", params) // if it fails the client is gone
	if m.Delta() {
		return
	}
	if !t.c.hasStreamed(e) {
		_ = t.s.conn.Notify(t.life, m.Type(), params)
	}
	t.progress.send(m.Type())
}

// A codexResult names the conversation. It holds the text as well: many clients give their model
// nothing else if it is there.
type codexResult struct {
	Content        string           `json:"content"`
	ConversationID p.ConversationID `json:"conversationId"`
	ThreadID       p.ConversationID `json:"threadId"`
}

func (t *turnCall) result(end engine.TurnEnd) toolResult {
	said := []string{end.Message}
	res := toolResult{Content: texts(said...)}
	if end.Returned || end.End.Reason != p.Completed {
		said = problems(end)
		res = failed(said...)
	}
	res.Structured = codexResult{strings.Join(said, "\n\n"), t.c.id, t.c.id}
	return res
}

// problems is what went wrong, and the text so far.
func problems(end engine.TurnEnd) []string {
	var list []string
	switch end.End.Reason {
	case p.Completed, "": // or it goes on, without the message
	case p.Failed:
		list = append(list, event.Failure(&end.End))
	case p.Replaced:
		list = append(list, "turn replaced by another message")
	default:
		list = append(list, "turn interrupted")
	}
	if end.Returned {
		list = append(list, "the message was not delivered")
	}
	if end.Message != "" {
		list = append(list, end.Message)
	}
	return list
}
