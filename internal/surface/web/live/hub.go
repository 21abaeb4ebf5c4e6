// Package live gives pages what they have not seen of a conversation. A [Hub] has one room for each
// conversation that a page shows; the room follows the conversation and folds its transcript
// once, whatever the number of pages. A page pulls: [View.Next] returns what is new since the last
// one, however much that is, so that one who is slow is late and delays no other client.
//
// What a page has seen is a cursor, the number of the last event, and for items that are open how much of
// their text. Both mean the same to every server, before and after a restart.
package live

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options are what a hub works with.
type Options struct {
	Engine engine.Engine
	Cost   func(p.Settings, p.Usage) (float64, bool) // may be nil

	// Changed is called when a turn begins, waits or ends. It must not block. May be nil.
	Changed func()

	Panicked panics.Log // keeps the trace of what panicked; may be nil
}

// A Hub has the rooms. Its methods may be called from any goroutine.
type Hub struct {
	o     Options
	ctx   context.Context
	opens chan *opening
	leave chan *room
	empty chan *room // those that were left a while ago
}

type opening struct {
	id    p.ConversationID
	reply chan *room
}

// linger is how long a room stays without a page: a page that was reloaded finds it.
const linger = 20 * time.Second

// NewHub makes a hub, which ends with ctx.
func NewHub(ctx context.Context, o Options) *Hub {
	h := &Hub{o: o, ctx: ctx, opens: make(chan *opening), leave: make(chan *room), empty: make(chan *room)}
	go h.run() // ends with ctx
	return h
}

func (h *Hub) run() {
	rooms := map[p.ConversationID]*room{}
	drop := func(r *room) {
		r.cancel()
		if rooms[r.id] == r {
			delete(rooms, r.id)
		}
	}
	for {
		select {
		case o := <-h.opens:
			r := rooms[o.id]
			if r == nil || r.ended() {
				r = newRoom(h.ctx, h.o, o.id)
				rooms[o.id] = r
			}
			r.views++
			o.reply <- r
		case r := <-h.leave:
			if r.views--; r.views > 0 {
				continue
			}
			if r.ended() {
				drop(r)
				continue
			}
			time.AfterFunc(linger, func() { send(h.ctx, h.empty, r) })
		case r := <-h.empty:
			if r.views == 0 {
				drop(r)
			}
		case <-h.ctx.Done():
			return
		}
	}
}

// send sends unless ctx ends.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// Open lets a page look at a conversation. The caller calls Close.
func (h *Hub) Open(ctx context.Context, id p.ConversationID, have Have) (*View, error) {
	o := &opening{id, make(chan *room, 1)}
	select {
	case h.opens <- o:
	case <-h.ctx.Done():
		return nil, engine.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return &View{hub: h, room: <-o.reply, have: have}, nil
}

// A View is what one page sees of a conversation. It is used by one goroutine.
type View struct {
	hub  *Hub
	room *room
	have Have
	ver  uint64 // what it was given last
}

// Close ends it.
func (v *View) Close() { send(v.hub.ctx, v.hub.leave, v.room) }

// Next waits until there is something that the page has not seen, and returns it.
func (v *View) Next(ctx context.Context) (*Update, error) {
	a := &ask{ctx: ctx, have: v.have, ver: v.ver, reply: make(chan answer, 1)}
	select {
	case v.room.asks <- a:
	case <-v.room.done:
		return nil, v.room.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case got := <-a.reply:
		v.have, v.ver = got.have, got.ver
		return got.update, nil
	case <-v.room.done:
		return nil, v.room.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Items returns the HTML of the items before the nth, at most limit of them, and Whole that of one item with
// nothing left out.
func (h *Hub) Items(ctx context.Context, id p.ConversationID, before, limit int) ([]Patch, error) {
	return inRoom(ctx, h, id, func(r *room) []Patch { return r.earlier(before, limit) })
}

// Whole returns the HTML of one item with nothing left out; empty if there is none.
func (h *Hub) Whole(ctx context.Context, id p.ConversationID, item string) (string, error) {
	return inRoom(ctx, h, id, func(r *room) string { return r.whole(item) })
}

// Approval returns what a pending approval is about.
func (h *Hub) Approval(ctx context.Context, id p.ConversationID, call p.CallID) (Question, error) {
	return inRoom(ctx, h, id, func(r *room) Question { return r.approval(call) })
}

// Elicitation returns the hash of what is shown of a question of an MCP server; empty if it does not wait any more.
func (h *Hub) Elicitation(ctx context.Context, id p.ConversationID, call p.CallID, number int) (string, error) {
	return inRoom(ctx, h, id, func(r *room) string { return r.elicitation(call, number) })
}

// Diff returns what a turn has changed in files, in git's format; turn 0 is the last one that did.
func (h *Hub) Diff(ctx context.Context, id p.ConversationID, turn p.TurnID) (Diff, error) {
	return inRoom(ctx, h, id, func(r *room) Diff { return r.diff(turn) })
}

// inRoom has the owner of a room compute something.
func inRoom[T any](ctx context.Context, h *Hub, id p.ConversationID, f func(*room) T) (T, error) {
	var zero T
	v, err := h.Open(ctx, id, Have{})
	if err != nil {
		return zero, err
	}
	defer v.Close()
	reply := make(chan T, 1)
	select {
	case v.room.calls <- func() { reply <- f(v.room) }:
	case <-v.room.done:
		return zero, v.room.err
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	select {
	case got := <-reply:
		return got, nil
	case <-v.room.done:
	}
	select {
	case got := <-reply: // it was the last thing that the room did
		return got, nil
	default:
		return zero, v.room.err
	}
}
