// Package follow lets one client follow a conversation several times over, in step: each event
// is taken by all of its followers before the next one is given to any. Whoever answers a
// request about a turn can therefore wait until the turn's end has been passed on
// to every follower ([Group.Ended]), whatever kind they are.
//
// Start with [Group.Join].
package follow

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Group is the followers that one client has of one conversation. Its methods may
// be called from any goroutine, Ended not from within an iteration of a follower.
type Group struct {
	engine engine.Engine
	id     p.ConversationID

	Panicked panics.Log // keeps the trace if reading panics, which ends the followers with an error; set before the first Join; may be nil

	mu     sync.Mutex
	reader *reader // nil while no client follows; guarded by mu
	count  int     // of the followers of reader; guarded by mu
}

// New makes a group. It costs nothing while no client follows.
func New(e engine.Engine, id p.ConversationID) *Group { return &Group{engine: e, id: id} }

// Options say what a follower gets.
type Options struct {
	After p.Cursor // events after it
	Live  func()   // called once, between two events, when everything has been given that there was at the time of Join
	First bool     // it is given each event before those that did not ask for that
}

// A Follower is one way in which the client follows the conversation.
type Follower struct {
	o     Options
	r     *reader
	given chan delivery // sent by the reader
	taken chan struct{} // sent when what was given has been dealt with
	gone  chan struct{} // closed when nothing more is taken
	leave func()        // once
}

// A delivery is an event, an error, or the word that the past ends here.
type delivery struct {
	event p.Event
	err   error
	live  bool
}

// errEnded is why a follower gets nothing more when the iteration of a group is over.
var errEnded = errors.New("the conversation is no longer followed")

// Join adds a follower. When it returns the follower counts for Ended, and holds up the others until
// Events or Leave is called.
func (g *Group) Join(ctx context.Context, o Options) (*Follower, error) {
	r := g.enter(ctx)
	f := &Follower{
		o: o, r: r,
		given: make(chan delivery), taken: make(chan struct{}), gone: make(chan struct{}),
	}
	f.leave = sync.OnceFunc(func() { close(f.gone); g.exit(r) })
	select {
	case r.joins <- f:
		return f, nil
	case <-r.done:
		f.leave()
		return nil, r.err
	case <-ctx.Done():
		f.leave()
		return nil, context.Cause(ctx)
	}
}

// Leave ends a follower whose events are not wanted after all.
func (f *Follower) Leave() { f.leave() }

// Events gives the events until ctx ends, the caller stops or the conversation is closed. An error is
// the last thing it gives. It can be called once.
func (f *Follower) Events(ctx context.Context) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		defer f.leave()
		for {
			var d delivery
			select {
			case d = <-f.given:
			case <-f.r.done:
				d.err = f.r.err
			case <-ctx.Done():
				d.err = context.Cause(ctx)
			}
			switch {
			case d.err != nil:
				yield(p.Event{}, d.err)
				return
			case d.live:
				f.o.Live()
			case !yield(d.event, nil):
				return
			}
			f.taken <- struct{}{} // the reader waits for it
		}
	}
}

// Ended waits until every follower that has joined has taken the end of a turn which has ended. It does
// not wait for those that leave, or if no client follows.
func (g *Group) Ended(ctx context.Context, turn p.TurnID) {
	g.mu.Lock()
	r := g.reader
	g.mu.Unlock()
	if r == nil {
		return
	}
	w := &wait{turn, make(chan struct{})}
	select {
	case r.waits <- w:
	case <-r.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-w.over:
	case <-r.done:
	case <-ctx.Done():
	}
}

// enter returns the reader, which it starts for the first follower.
func (g *Group) enter(ctx context.Context) *reader {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reader != nil {
		select {
		case <-g.reader.done: // its followers have yet to leave
			g.reader = nil
		default:
		}
	}
	if g.reader == nil {
		g.reader, g.count = newReader(context.WithoutCancel(ctx), g), 0
	}
	g.count++
	return g.reader
}

// exit counts a follower out. The last one stops the reader.
func (g *Group) exit(r *reader) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reader != r {
		return
	}
	if g.count--; g.count == 0 {
		r.cancel()
		g.reader = nil
	}
}

// A reader gives the events of a conversation to the followers of a group. All but its
// channels belongs to its goroutine.
type reader struct {
	engine engine.Engine
	id     p.ConversationID
	ctx    context.Context
	cancel context.CancelFunc
	joins  chan *Follower
	waits  chan *wait
	done   chan struct{} // closed when it gives nothing more
	err    error         // why; set before done is closed

	panicked panics.Log

	followers []*Follower
	early     []*Follower // those that know a later event than was given
	waiting   []*wait
	at        p.Cursor // the last recorded event that was given
	ended     p.TurnID // the last turn whose end was given, or that had ended before
	open      []text   // of the items that are open, what was given
}

// A wait is for the end of a turn to be taken.
type wait struct {
	turn p.TurnID
	over chan struct{}
}

// A text is a stretch of an open item.
type text struct {
	item   p.ItemID
	kind   p.DeltaKind
	offset int64
	text   []byte
}

// maxText is how much of the end of a stretch is kept at least; up to twice as much is.
const maxText = 1 << 20

// add continues the stretch. Of one that is very long only the end is kept.
func (t *text) add(more string) {
	t.text = append(t.text, more...)
	if len(t.text) <= 2*maxText {
		return
	}
	from := len(t.text) - maxText
	for from < len(t.text) && !utf8.RuneStart(t.text[from]) {
		from++
	}
	t.offset += int64(from)
	t.text = slices.Clone(t.text[from:])
}

func newReader(ctx context.Context, g *Group) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{
		engine: g.engine, id: g.id, panicked: g.Panicked, ctx: ctx, cancel: cancel, joins: make(chan *Follower), waits: make(chan *wait), done: make(chan struct{}),
	}
	go func() { // ends with ctx, or when the conversation can no longer be read
		defer close(r.done)
		defer r.cancel()
		if err := r.panicked.Run(r.run); err != nil {
			r.err = err
		}
	}()
	return r
}

func (r *reader) run() {
	r.err = errEnded
	snap, err := r.engine.Resume(r.ctx, r.id)
	if err != nil {
		r.err = err
		return
	}
	r.at, r.ended = snap.Last, snap.Turn
	if snap.Active {
		r.ended--
	}
	events := make(chan delivery)
	go func() { // ends with ctx
		if err := r.panicked.Run(func() { r.read(snap.Last, events) }); err != nil {
			r.send(events, delivery{err: err})
		}
	}()
	var joins chan *Follower // nil until the text of open items has been read
	var waits chan *wait     // likewise
	for {
		select {
		case d := <-events:
			switch {
			case d.err != nil:
				r.err = d.err
				return
			case d.live:
				joins, waits = r.joins, r.waits
			default:
				r.give(d.event)
			}
		case f := <-joins:
			r.early = append(r.early, f)
			r.admit()
		case w := <-waits:
			r.waiting = append(r.waiting, w)
			r.wake()
		case <-r.ctx.Done():
			return
		}
	}
}

// read passes on what happens after the cursor.
func (r *reader) read(after p.Cursor, events chan<- delivery) {
	for e, err := range r.engine.Attach(r.ctx, r.id, after, func() { r.send(events, delivery{live: true}) }) {
		if !r.send(events, delivery{event: e, err: err}) {
			return
		}
	}
}

func (r *reader) send(events chan<- delivery, d delivery) bool {
	select {
	case events <- d:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// give gives one event to all, and waits until they have taken it.
func (r *reader) give(e p.Event) {
	r.followers = slices.DeleteFunc(r.followers, func(f *Follower) bool { return !f.take(delivery{event: e}) })
	if e.Seq != 0 && !e.Unsaved {
		r.at = e.Seq
	}
	r.note(e)
	r.admit()
	if _, ok := e.Body.(*p.TurnEnded); ok {
		r.ended = max(r.ended, e.Turn)
		r.wake()
	}
}

// admit makes followers of those that wait for the event which they know.
func (r *reader) admit() {
	r.early = slices.DeleteFunc(r.early, func(f *Follower) bool {
		if f.o.After > r.at {
			return false
		}
		r.catchUp(f)
		return true
	})
}

// take gives a follower something and reports whether it follows on.
func (f *Follower) take(d delivery) bool {
	select {
	case f.given <- d:
	case <-f.gone:
		return false
	}
	select {
	case <-f.taken:
		return true
	case <-f.gone:
		return false
	}
}

// wake ends the waits for turns that have ended.
func (r *reader) wake() {
	r.waiting = slices.DeleteFunc(r.waiting, func(w *wait) bool {
		if w.turn > r.ended {
			return false
		}
		close(w.over)
		return true
	})
}

// catchUp gives a new follower what the others have had after its cursor, and makes it one of them.
func (r *reader) catchUp(f *Follower) {
	if f.o.After < r.at {
		for e, err := range r.engine.Subscribe(r.ctx, r.id, f.o.After) {
			if err != nil {
				f.take(delivery{err: err})
				return
			}
			if e.Seq > r.at {
				break
			}
			if e.Seq != 0 && !f.take(delivery{event: e}) {
				return
			}
			if e.Seq == r.at {
				break
			}
		}
	}
	for _, t := range r.open {
		d := &p.Delta{Item: t.item, Kind: t.kind, Offset: t.offset, Text: string(t.text)}
		if !f.take(delivery{event: p.Event{Turn: t.item.Turn, Body: d}}) {
			return
		}
	}
	if !f.take(delivery{live: true}) {
		return
	}
	if f.o.First {
		r.followers = slices.Insert(r.followers, 0, f)
		return
	}
	r.followers = append(r.followers, f)
}

// note remembers the text of open items.
func (r *reader) note(e p.Event) {
	switch b := e.Body.(type) {
	case *p.Delta:
		last := len(r.open) - 1
		if last >= 0 && r.open[last].item == b.Item && r.open[last].kind == b.Kind {
			r.open[last].add(b.Text)
			return
		}
		r.open = append(r.open, text{b.Item, b.Kind, b.Offset, []byte(b.Text)})
	case *p.AssistantMessage:
		r.forget(func(i p.ItemID) bool { return i == b.Item })
	case *p.Reasoning:
		r.forget(func(i p.ItemID) bool { return i == b.Item })
	case *p.ToolOutput:
		r.forget(func(i p.ItemID) bool { return i == b.Call })
	case *p.BackgroundEnded:
		r.forget(func(i p.ItemID) bool { return i == b.ID.Item() })
	case *p.TurnEnded:
		r.forget(func(i p.ItemID) bool { return i.Turn == e.Turn })
	}
}

func (r *reader) forget(closed func(p.ItemID) bool) {
	r.open = slices.DeleteFunc(r.open, func(t text) bool { return closed(t.item) })
}
