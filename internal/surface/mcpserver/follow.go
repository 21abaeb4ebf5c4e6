package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// A follower gives a client a conversation: what has been, then what happens,
// without a gap. How that is sent is the caller's.
type follower struct {
	s      *Server
	c      *conversation
	first  bool     // it is sent events before the others are
	show   p.Cursor // what is sent begins after it
	seen   p.Cursor // the last that was sent and recorded
	from   p.Cursor // where reading begins: earlier, if that is needed to know what calls are called
	window int64    // of the model, where reading begins
	send   func(e p.Event, id string, m event.Msg)
	live   func() // what has been is sent: from here on it is live
	asks   *asker

	mid      bool        // it begins in the middle of a turn, of which it reports what is open
	missed   []event.Msg // that
	missedID string

	joined *follow.Follower // has joined and not begun to read
	over   p.TurnID         // the turn whose end was sent last, or was never to be sent
	done   chan struct{}    // closed when it follows no more
}

// join makes the follower one of the conversation's, before the client is answered: whatever the client
// asks next is answered behind what the follower is sent. What fails here is tried again by run.
func (f *follower) join(ctx context.Context) {
	f.asks.hold = true
	f.joined, _ = f.c.group.Join(ctx, follow.Options{After: f.from, First: f.first, Live: func() {
		f.catchUp()
		f.live()
		f.live = func() {}
		f.asks.resume()
	}})
}

// run follows until ctx ends or the conversation is put aside. One that was closed because
// it could not be recorded is followed again when a client uses it.
func (f *follower) run(ctx context.Context) {
	defer close(f.done)
	defer f.asks.close()
	if err := f.s.o.Panicked.Run(func() { f.follow(ctx) }); err != nil {
		f.s.remark(ctx, []string{fmt.Sprintf("conversation %s is no longer followed: %v", f.c.id, err)})
	}
}

// follow reads the conversation, again each time it is closed and used anew. What it has joined for it reads in any case: the end of a
// turn, too, that putting the conversation aside has ended before this began.
func (f *follower) follow(ctx context.Context) {
	translator := event.New(f.window)
	for {
		used := *f.c.used.Load() // by those that come after this, of whom one may put it aside
		if f.joined != nil || f.isKnown() {
			f.read(ctx, translator)
		}
		if !f.isKnown() {
			return
		}
		select {
		case <-used:
		case <-ctx.Done():
			return
		}
		f.show, f.from = max(f.show, f.seen), 0 // what was asked then may be open again
	}
}

// isKnown reports whether the conversation was not put aside.
func (f *follower) isKnown() bool {
	known, _ := f.s.known.get(f.c.id)
	return known == f.c
}

// read follows until ctx ends or the conversation is closed. Approvals that were asked for
// earlier are put when the rest has been sent.
func (f *follower) read(ctx context.Context, translator *event.Translator) {
	if f.joined == nil {
		f.join(ctx)
	}
	if f.joined == nil {
		return
	}
	events := f.joined.Events(ctx)
	f.joined = nil
	for e, err := range events {
		if err != nil {
			return
		}
		f.take(e, translator)
	}
}

// take sends one event. Of a turn whose end was sent nothing more is: that end may not have been
// recorded, and the turn may have been ended once more when its conversation was opened again.
func (f *follower) take(e p.Event, translator *event.Translator) {
	over := e.Turn != 0 && e.Turn <= f.over
	for _, m := range translator.Translate(e) {
		switch shown := e.Seq == 0 || e.Seq > f.show; {
		case over:
		case shown:
			f.catchUp()
			f.send(e, eventID(e), m)
		case f.mid:
			f.missed = begun(f.missed, m)
			f.missedID = eventID(e)
		}
	}
	f.asks.event(e)
	if e.Seq != 0 && !e.Unsaved {
		f.seen = e.Seq
	}
	if _, ok := e.Body.(*p.TurnEnded); ok {
		f.over = max(f.over, e.Turn) // earlier ones may be read again
	}
}

// catchUp sends what had begun, and not ended, before the first event that is sent.
func (f *follower) catchUp() {
	for _, m := range f.missed {
		f.send(p.Event{}, f.missedID, m)
	}
	f.mid, f.missed = false, nil
}

// eventID is the name of an event's turn.
func eventID(e p.Event) string {
	if e.Turn == 0 {
		return ""
	}
	return strconv.Itoa(int(e.Turn))
}

// A listener is a follower that was asked for by addConversationListener.
type listener struct {
	*follower
	ctx    context.Context // what it follows for
	cancel context.CancelFunc
}

type listenerParams struct {
	ConversationID p.ConversationID `json:"conversationId"`
	ID             string           `json:"id"`
	Msg            event.Msg        `json:"msg"`
}

// newListener makes a listener that reports everything since this client came to the
// conversation.
func (s *Server) newListener(ctx context.Context, c *conversation, snap engine.Snapshot) *listener {
	f := &follower{s: s, c: c, show: c.start, from: c.start, over: c.over, window: snap.Settings.ContextWindow, live: func() {}, done: make(chan struct{})}
	if c.mid {
		f.from, f.mid = 0, true
	}
	ctx, cancel := context.WithCancel(ctx)
	f.send = func(_ p.Event, id string, m event.Msg) {
		_ = s.conn.Notify(ctx, "codex/event/"+m.Type(), listenerParams{c.id, id, m}) // if it fails the client has left
	}
	f.asks = newAsker(context.WithoutCancel(ctx), c.desk, byListener, func(q question) (string, any) { return s.directQuestion(c.id, q) })
	return &listener{f, ctx, cancel}
}

// finish sees the conversation to an end because the client will say nothing more. A turn
// that runs is stopped, and its end reported; one that waits for a person goes on waiting.
func (f *follower) finish(life context.Context) {
	if f.s.waits(life, f.c.id) {
		return
	}
	receipt, err := f.s.o.Engine.Submit(life, f.c.id, p.Interrupt{})
	if err != nil {
		return
	}
	if _, err := engine.FollowTurn(life, f.s.o.Engine, f.c.id, receipt.Turn, receipt.Seq, func(p.Event) {}); err != nil {
		return
	}
	f.c.group.Ended(life, receipt.Turn)
}

// waits reports whether a conversation only waits for a person.
func (s *Server) waits(ctx context.Context, id p.ConversationID) bool {
	snap, err := s.o.Engine.Resume(ctx, id)
	return err == nil && snap.Waiting
}

// lookUp is find with an error in the form of the direct requests.
func (s *Server) lookUp(ctx context.Context, name string) (*conversation, engine.Snapshot, error) {
	c, snap, err := s.find(ctx, name)
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return nil, snap, &jsonrpc.Error{Code: own.Code, Message: err.Error()}
	}
	return c, snap, err
}
