package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// conversationTools are those whose events are asked for by conversationStream.
func (s *Server) conversationTools() []tool {
	return []tool{
		newTool("conversationCreate", "Create Conversation", "Begin a conversation. A prompt, if there is one, is its first message.", s.conversationCreate).withSettings(snake),
		newTool("conversationSendMessage", "Send Message", "Send a message to a conversation. Cancelling it stops its turn.", s.conversationSend).withSettings(snake),
		newTool("conversationStream", "Stream Conversation", "Get what has happened in a conversation, then what happens. Cancelling it pauses the stream.", s.conversationStream),
		newTool("conversationsList", "List Conversations", "List conversations, those changed last first.", s.conversationsList),
	}
}

// structured is a result whose text is its JSON.
func structured(v any, failed bool) toolResult {
	text, err := json.Marshal(v)
	if err != nil { // only texts and numbers are in it
		text = []byte("{}")
	}
	return toolResult{Content: texts(string(text)), IsError: &failed, Structured: v}
}

type createArguments struct {
	Prompt string `json:"prompt" doc:"the first message; none if empty"`
	Cwd    string `json:"cwd" doc:"where to work"`
}

type createResult struct {
	ConversationID p.ConversationID `json:"conversation_id"`
	Model          string           `json:"model"`
}

type problem struct {
	Message string `json:"message"`
}

func (s *Server) conversationCreate(ctx context.Context, r *jsonrpc.Request, in callParams, a createArguments) (toolResult, error) {
	life := context.WithoutCancel(ctx)
	request, err := in.settings()
	if err != nil {
		return structured(problem{err.Error()}, true), nil
	}
	c, settings, err := s.create(life, request)
	if err != nil {
		return structured(problem{err.Error()}, true), nil
	}
	c.created.Store(&r.ID)
	if a.Prompt != "" {
		if _, err := s.o.Engine.Submit(life, c.id, p.UserTurn{Content: p.Text(a.Prompt)}); err != nil {
			return structured(problem{err.Error()}, true), nil
		}
	}
	return structured(createResult{c.id, settings.Model}, false), nil
}

type sendArguments struct {
	ConversationID string     `json:"conversation_id"`
	Content        []item     `json:"content"`
	ParentMessage  string     `json:"parent_message_id,omitempty" doc:"refused: a message goes to the end of its conversation"`
	WhenBusy       p.WhenBusy `json:"whenBusy,omitempty" enum:"steer,queue,replace" doc:"what becomes of it while a turn runs, also one that is waiting for approval: steer (join the turn with its next model request), queue (start the next turn) or replace (interrupt the turn); default steer, or queue for a message with settings of its own"`
}

type sendResult struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

func notSent(text string) toolResult { return structured(sendResult{"error", text}, true) }

// conversationSend answers when the message is accepted. It runs on until its turn has
// ended, so that it can be cancelled.
func (s *Server) conversationSend(ctx context.Context, r *jsonrpc.Request, in callParams, a sendArguments) (toolResult, error) {
	c, snap, err := s.find(context.WithoutCancel(ctx), a.ConversationID)
	if errors.Is(err, errUnknown) {
		return notSent("Session does not exist"), nil
	}
	if err != nil {
		return notSent(err.Error()), nil
	}
	turn, err := s.message(ctx, in, a, snap.Settings)
	if err != nil {
		return notSent(err.Error()), nil
	}
	taken := func(p.Receipt) {
		r.Reply(structured(sendResult{Status: "ok"}, false), nil)
		r.Release()
	}
	ctx, leave, over := s.untilWaiting(ctx, r, c.id)
	defer over()
	if _, err := engine.RunTurn(ctx, &submitHook{Engine: s.o.Engine, c: c, taken: taken, leave: leave}, c.id, turn, func(p.Event) {}); err != nil {
		return notSent(err.Error()), nil // if it was accepted the answer has gone
	}
	return toolResult{}, nil
}

// untilWaiting returns ctx, ending also when the client will say nothing more: then a turn is
// stopped. One that only waits for a person goes on waiting, which ends leave instead.
func (s *Server) untilWaiting(ctx context.Context, r *jsonrpc.Request, id p.ConversationID) (run, leave context.Context, over func()) {
	run, stop := context.WithCancelCause(ctx)
	leave, left := context.WithCancel(context.WithoutCancel(ctx))
	end := r.UntilEnd(ctx)
	forget := context.AfterFunc(end, func() {
		if ctx.Err() == nil && s.waits(leave, id) {
			left()
			return
		}
		stop(context.Cause(end))
	})
	return run, leave, func() { forget(); stop(nil); left() }
}

var errNoParent = errors.New("parent_message_id: a message goes to the end of its conversation, not below another")

// message is what is sent, and what it changes.
func (s *Server) message(ctx context.Context, in callParams, a sendArguments, now p.Settings) (p.UserTurn, error) {
	if a.ParentMessage != "" {
		return p.UserTurn{}, errNoParent
	}
	request, err := in.settings()
	if err != nil {
		return p.UserTurn{}, err
	}
	turn := p.UserTurn{WhenBusy: a.WhenBusy}
	if turn.Overrides, err = s.change(ctx, now, request); err != nil {
		return turn, err
	}
	turn.Content, err = contents(a.Content, now.Cwd)
	return turn, err
}

type streamArguments struct {
	ConversationID string  `json:"conversation_id"`
	Cursor         *uint64 `json:"cursor,omitempty" doc:"give only what came after the event of this number"`
	Meta           bool    `json:"meta,omitempty" doc:"name the conversation in the _meta of each event"`
}

// conversationStream answers, then sends what has been in one notification, then
// what happens, until it is cancelled or streamed anew.
func (s *Server) conversationStream(ctx context.Context, r *jsonrpc.Request, _ callParams, a streamArguments) (toolResult, error) {
	c, snap, err := s.find(context.WithoutCancel(ctx), a.ConversationID)
	if errors.As(err, new(*jsonrpc.Error)) { // there is none, which these clients know without words
		return toolResult{Content: texts(), IsError: new(true)}, nil
	}
	if err != nil {
		return structured(problem{err.Error()}, true), nil
	}
	asked := ctx
	st := s.newStream(asked, r, c, a, snap)
	defer st.end()
	r.Reply(structured(empty{}, false), nil)
	r.Release()
	stop := context.AfterFunc(r.UntilEnd(asked), func() {
		if asked.Err() == nil { // it is not the stream that is cancelled
			st.finish(context.WithoutCancel(asked))
		}
		st.cancel()
	})
	defer stop()
	st.run(st.ctx)
	return toolResult{}, nil
}

// A stream shows one client one conversation.
type stream struct {
	*follower
	ctx      context.Context
	cancel   context.CancelFunc
	numbered bool
	meta     *streamMeta // nil: none
	begun    bool        // what has been is sent; written under c.mu
	past     []streamEvent
	pieces   int // how many in past are pieces of something: seldom any, and only near its end
}

// newStream makes the client's stream of a conversation, in place of the one that it may have.
func (s *Server) newStream(ctx context.Context, r *jsonrpc.Request, c *conversation, a streamArguments, snap engine.Snapshot) *stream {
	ctx, cancel := context.WithCancel(ctx)
	st := &stream{ctx: ctx, cancel: cancel, numbered: a.Cursor != nil}
	if a.Meta {
		st.meta = &streamMeta{c.id}
	}
	request := r.ID
	if created := c.created.Load(); created != nil {
		request = *created
	}
	st.follower = &follower{
		s: s, c: c, first: true, window: snap.Settings.ContextWindow, send: st.send, live: st.begin, done: make(chan struct{}),
		asks: newAsker(context.WithoutCancel(ctx), c.desk, byStream, func(q question) (string, any) { return s.elicitation(q, request) }),
	}
	if a.Cursor != nil {
		st.show = p.Cursor(*a.Cursor)
	}
	if before := c.stream(st); before != nil {
		before.cancel()
		<-before.done
	}
	st.join(ctx)
	return st
}

// stream makes st the client's stream and returns the one before it.
func (c *conversation) stream(st *stream) (before *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.streaming = c.streaming, st
	return before
}

// end gives the conversation's stream up, if it is this one still.
func (st *stream) end() {
	st.cancel()
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	if st.c.streaming == st {
		st.c.streaming = nil
	}
}

// hasStreamed reports whether a stream has sent an event. What a call that joins a turn in its middle is sent
// of the time before has no number: a stream has sent that long ago.
func (c *conversation) hasStreamed(e p.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Seq == 0 {
		return e.Turn != 0 && c.streaming != nil && c.streaming.begun
	}
	return e.Seq <= c.streamed
}

type streamMeta struct {
	ConversationID p.ConversationID `json:"conversationId"`
}

type streamEvent struct {
	Meta *streamMeta `json:"_meta,omitempty"`
	Msg  event.Msg   `json:"msg"`
	Seq  p.Seq       `json:"seq,omitempty"`

	piece p.ItemID // what it is a piece of
}

type initialState struct {
	Meta  streamMeta `json:"_meta"`
	State struct {
		Events []streamEvent `json:"events"`
	} `json:"initial_state"`
}

func (st *stream) send(e p.Event, _ string, m event.Msg) {
	delete(m, "model_context_window") // these clients know no such member
	ev := streamEvent{Msg: m}
	if st.numbered {
		ev.Seq = e.Seq
	}
	if st.begun {
		ev.Meta = st.meta
		if st.s.conn.Notify(st.ctx, m.Type(), ev) == nil { // else the client has left
			st.c.mu.Lock()
			st.c.streamed = max(st.c.streamed, e.Seq)
			st.c.mu.Unlock()
		}
		return
	}
	item := itemOf(e.Body)
	switch before := len(st.past); {
	case m.Delta():
		ev.piece = item
		st.pieces++
	case st.pieces > 0 && item != (p.ItemID{}): // what is finished stands for its pieces
		st.past = slices.DeleteFunc(st.past, func(old streamEvent) bool { return old.piece == item })
		st.pieces -= before - len(st.past)
	}
	st.past = append(st.past, ev)
}

// itemOf is the item that an event is about, none for most events.
func itemOf(b p.Body) p.ItemID {
	switch b := b.(type) {
	case *p.Delta:
		return b.Item
	case *p.AssistantMessage:
		return b.Item
	case *p.Reasoning:
		return b.Item
	case *p.ToolOutput:
		return b.Call
	}
	return p.ItemID{}
}

// begin sends what has been.
func (st *stream) begin() {
	var state initialState
	state.Meta = streamMeta{st.c.id}
	state.State.Events = append([]streamEvent{}, st.past...)
	st.past = nil
	st.c.mu.Lock()
	st.begun = true
	st.c.streamed = max(st.c.streamed, st.seen)
	st.c.mu.Unlock()
	_ = st.s.conn.Notify(st.ctx, "notifications/initial_state", state)
}

type conversationsArguments struct {
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

type titled struct {
	ConversationID p.ConversationID `json:"conversation_id"`
	Title          string           `json:"title"`
}

type conversationsResult struct {
	Conversations []titled `json:"conversations"`
	Next          string   `json:"next_cursor,omitempty"`
}

func (s *Server) conversationsList(ctx context.Context, _ *jsonrpc.Request, _ callParams, a conversationsArguments) (toolResult, error) {
	page, err := s.o.Engine.List(ctx, engine.ListOptions{Limit: a.Limit, Cursor: a.Cursor})
	if err != nil {
		return structured(problem{err.Error()}, true), nil
	}
	res := conversationsResult{Conversations: []titled{}, Next: page.Next}
	for _, it := range page.Items {
		res.Conversations = append(res.Conversations, titled{it.ID, it.Title})
	}
	return structured(res, false), nil
}
