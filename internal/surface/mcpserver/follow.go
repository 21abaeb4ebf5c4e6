package mcpserver

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// A follower gives a client a conversation: what has been, then what happens,
// without a gap. How that is told is the caller's.
type follower struct {
	s      *Server
	c      *conversation
	show   p.Cursor // what is told begins after it
	seen   p.Cursor // the last that was told and recorded
	from   p.Cursor // where reading begins: earlier, if that is needed to know what calls are called
	window int64    // of the model, where reading begins
	asks   func(question) (method string, params any)
	tell   func(e p.Event, id string, m event.Msg)
	live   func() // what has been is told: from here on it is live

	last  atomic.Int64  // the turn whose end was told last, or was never to be told
	ended sync.Map      // p.TurnID to a channel, for whoever waits for the end to be told
	done  chan struct{} // closed when it follows no more
}

// run follows until ctx ends or the conversation is put aside. One that was closed because
// it could not be recorded is followed again when somebody uses it.
func (f *follower) run(ctx context.Context) {
	defer close(f.done)
	asks := newAsker(context.WithoutCancel(ctx), f.s, f.c.id, f.asks)
	defer asks.close()
	translator := event.New(f.window)
	for {
		used := *f.c.used.Load() // by those that come after this, of whom one may put it aside
		if known, _ := f.s.known.Load(f.c.id); known != f.c {
			return
		}
		f.read(ctx, translator, asks)
		select {
		case <-used:
		case <-ctx.Done():
			return
		}
		f.show, f.from = max(f.show, f.seen), 0 // what was asked then may be open again
	}
}

// read follows until ctx ends or the conversation is closed. Approvals that were asked for
// earlier are put when the rest has been told.
func (f *follower) read(ctx context.Context, translator *event.Translator, asks *asker) {
	asks.hold = true
	live := func() {
		f.live()
		f.live = func() {}
		asks.resume()
	}
	for e, err := range f.s.o.Engine.Attach(ctx, f.c.id, f.from, live) {
		if err != nil {
			return
		}
		f.take(e, translator, asks)
	}
}

// take tells one event. Of a turn whose end was told nothing more is: that end may not have been
// recorded, and the turn may have been ended once more when its conversation was opened again.
func (f *follower) take(e p.Event, translator *event.Translator, asks *asker) {
	over := e.Turn != 0 && int64(e.Turn) <= f.last.Load()
	for _, m := range translator.Translate(e) {
		if !over && (e.Seq == 0 || e.Seq > f.show) {
			f.tell(e, eventID(e), m)
		}
	}
	asks.event(e)
	if e.Seq != 0 && !e.Unsaved {
		f.seen = e.Seq
	}
	if _, ok := e.Body.(*p.TurnEnded); ok {
		f.last.Store(max(f.last.Load(), int64(e.Turn))) // earlier ones may be read again
		f.wake(e.Turn)
	}
}

// end is closed when the end of the turn has been told.
func (f *follower) end(turn p.TurnID) <-chan struct{} {
	ch, _ := f.ended.LoadOrStore(turn, make(chan struct{}))
	if f.last.Load() >= int64(turn) {
		f.wake(turn)
	}
	return ch.(chan struct{})
}

func (f *follower) wake(turn p.TurnID) {
	if ch, ok := f.ended.LoadAndDelete(turn); ok {
		close(ch.(chan struct{}))
	}
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

// newListener makes a listener that tells everything since this client came to the
// conversation.
func (s *Server) newListener(ctx context.Context, c *conversation, snap engine.Snapshot) *listener {
	f := &follower{s: s, c: c, show: c.start, from: c.start, window: snap.Settings.ContextWindow, live: func() {}, done: make(chan struct{})}
	f.last.Store(int64(c.over))
	if c.mid {
		f.from = 0
	}
	ctx, cancel := context.WithCancel(ctx)
	f.tell = func(_ p.Event, id string, m event.Msg) {
		_ = s.conn.Notify(ctx, "codex/event/"+m.Type(), listenerParams{c.id, id, m}) // if it fails nobody listens
	}
	f.asks = func(q question) (string, any) { return directApproval(c.id, q) }
	return &listener{f, ctx, cancel}
}

// finish sees the conversation to an end because the client will say nothing more. A turn
// that runs is stopped, and its end told; one that waits for a person goes on waiting.
func (f *follower) finish(life context.Context) {
	if f.s.waits(life, f.c.id) {
		return
	}
	receipt, err := f.s.o.Engine.Submit(life, f.c.id, p.Interrupt{})
	if err != nil {
		return
	}
	select {
	case <-f.end(receipt.Turn):
	case <-f.done:
	}
}

// waits reports whether a conversation only waits for a person.
func (s *Server) waits(ctx context.Context, id p.ConversationID) bool {
	snap, err := s.o.Engine.Resume(ctx, id)
	return err == nil && snap.Waiting
}

// told waits until every listener has told the end of a turn.
func (s *Server) told(ctx context.Context, id p.ConversationID, turn p.TurnID) {
	s.listeners.Range(func(_, v any) bool {
		if l := v.(*listener); l.c.id == id {
			select {
			case <-l.end(turn):
			case <-l.done:
			case <-ctx.Done():
			}
		}
		return true
	})
}

// unheard waits until no listener can be asked about a conversation. It is false if that
// no longer matters: the question is over, or all go because the client does.
func (s *Server) unheard(ctx context.Context, id p.ConversationID) bool {
	for {
		l := s.listening(id)
		if l == nil {
			return !s.conn.Ended()
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return false
		}
	}
}

// listening returns a listener of a conversation that follows it still, nil if there is none.
func (s *Server) listening(id p.ConversationID) (found *listener) {
	s.listeners.Range(func(_, v any) bool {
		l := v.(*listener)
		if l.c.id != id {
			return true
		}
		select {
		case <-l.done:
			return true
		default:
			found = l
			return false
		}
	})
	return found
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
