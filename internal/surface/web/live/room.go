package live

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A room follows one conversation. What is below the channels belongs to its goroutine.
type room struct {
	o      Options
	id     p.ConversationID
	ctx    context.Context
	cancel context.CancelFunc
	asks   chan *ask
	calls  chan func()
	done   chan struct{} // closed when it follows no more
	err    error         // why; set before done is closed
	views  int           // belongs to the hub

	tr      transcript.Transcript
	rows    []*row // beside tr.Items
	byItem  map[*transcript.Item]*row
	ver     uint64 // grows with every event and every piece of text
	state   uint64 // the version at which the state last changed
	seq     p.Seq  // the last event
	log     []change
	waiting []*ask
	diffs   map[p.TurnID]string
	phase   string // that was announced
	first   string // what the user said first
}

// A row is an item and what is known of its drawing.
type row struct {
	it     *transcript.Item
	n      int
	ver    uint64         // at which it last changed
	shape  uint64         // at which more than its text changed
	seq    p.Seq          // the last event that changed it; 0 if only text has come
	blocks *render.Blocks // of a message that is open
	html   string
	drawn  uint64 // the version that html is of
}

// A change says that a row changed at a version.
type change struct {
	ver uint64
	row int
}

// An ask is a page that wants to know what is new.
type ask struct {
	ctx   context.Context
	have  Have
	ver   uint64
	reply chan answer // has room for one
}

type answer struct {
	update *Update
	have   Have
	ver    uint64
}

func newRoom(ctx context.Context, o Options, id p.ConversationID) *room {
	ctx, cancel := context.WithCancel(ctx)
	r := &room{
		o: o, id: id, ctx: ctx, cancel: cancel, asks: make(chan *ask), calls: make(chan func()), done: make(chan struct{}),
		byItem: map[*transcript.Item]*row{}, diffs: map[p.TurnID]string{},
	}
	go func() { // ends with ctx, or when the conversation cannot be read any more
		defer close(r.done)
		defer r.cancel()
		if err := o.Panicked.Run(r.run); err != nil {
			r.err = err
		}
	}()
	return r
}

func (r *room) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// A delivery is an event, an error, or the word that the past ends here.
type delivery struct {
	event p.Event
	err   error
	live  bool
}

var errEnded = errors.New("the conversation is no longer followed")

func (r *room) run() {
	r.err = errEnded
	events := make(chan delivery, 256) // so that a burst is folded before pages are answered
	go func() {                        // ends with ctx
		if err := r.o.Panicked.Run(func() { r.read(events) }); err != nil {
			send(r.ctx, events, delivery{err: err})
		}
	}()
	var asks chan *ask    // nil until all that there was has been read
	var calls chan func() // likewise
	for {
		select {
		case d := <-events:
			for more := true; more; {
				switch {
				case d.err != nil:
					r.err = d.err
					return
				case d.live:
					asks, calls = r.asks, r.calls
					r.revive()
				default:
					r.apply(d.event)
				}
				select {
				case d = <-events:
				default:
					more = false
				}
			}
			if asks != nil {
				r.announce()
				r.wake()
			}
		case a := <-asks:
			r.waiting = append(r.waiting, a)
			r.wake()
		case f := <-calls:
			f()
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *room) read(events chan<- delivery) {
	live := func() { send(r.ctx, events, delivery{live: true}) }
	for e, err := range r.o.Engine.Attach(r.ctx, r.id, 0, live) {
		if !send(r.ctx, events, delivery{event: e, err: err}) {
			return
		}
	}
}

// announce says that the phase has changed.
func (r *room) announce() {
	now := phase(&r.tr, len(r.asking()))
	if now != r.phase && r.o.Changed != nil {
		r.o.Changed()
	}
	r.phase = now
}

// revive opens a conversation whose turn seems to run: if the process that ran it has died, its end is
// recorded now.
func (r *room) revive() {
	if !r.tr.Active || r.tr.Hold != nil || len(r.asking()) > 0 {
		return
	}
	go func() { // ends with ctx
		_ = r.o.Panicked.Run(func() { // what it is like is seen by following it
			_, _ = r.o.Engine.Resume(r.ctx, r.id) // another process that has it open is the good case
		})
	}()
}

// apply folds one event.
func (r *room) apply(e p.Event) {
	r.ver++
	changed := r.tr.Apply(e)
	_, open := e.Body.(*p.Delta)
	if !open {
		r.state = r.ver
		if e.Seq > r.seq {
			r.seq = e.Seq
		}
	}
	if d, ok := e.Body.(*p.TurnDiff); ok {
		r.diffs[e.Turn] = d.Diff
	}
	for _, it := range changed {
		if r.first == "" && it.Kind == transcript.User {
			r.first = safetext.First(it.Text)
		}
		w := r.byItem[it]
		if w == nil {
			w = &row{it: it, n: len(r.rows), shape: r.ver}
			r.byItem[it] = w
			r.rows = append(r.rows, w)
		}
		w.ver = r.ver
		if !open {
			w.seq, w.shape, w.blocks = e.Seq, r.ver, nil
		} else if it.Kind == transcript.Message || it.Kind == transcript.Reasoning {
			if w.blocks == nil {
				w.blocks = &render.Blocks{}
			}
			w.blocks.Write(it.Text[min(w.blocks.Len(), len(it.Text)):])
		}
		r.note(w)
	}
}

// note remembers that a row changed. The log holds at most two entries for each row.
func (r *room) note(w *row) {
	if n := len(r.log); n > 0 && r.log[n-1].row == w.n {
		r.log[n-1].ver = r.ver
		return
	}
	r.log = append(r.log, change{r.ver, w.n})
	if len(r.log) > 2*len(r.rows)+64 {
		r.log = slices.DeleteFunc(r.log, func(c change) bool { return r.rows[c.row].ver != c.ver })
	}
}

// wake answers the pages for which there is something new.
func (r *room) wake() {
	r.waiting = slices.DeleteFunc(r.waiting, func(a *ask) bool {
		if a.ver == r.ver || a.ctx.Err() != nil {
			return a.ctx.Err() != nil
		}
		update, have := r.since(a)
		a.reply <- answer{update, have, r.ver}
		return true
	})
}

// asking are the items that wait for a person.
func (r *room) asking() (list []*transcript.Item) {
	if !r.tr.Active {
		return nil
	}
	for _, w := range slices.Backward(r.rows) {
		if w.it.Turn != 0 && w.it.Turn < r.tr.Turn {
			break
		}
		if w.it.Status == transcript.Asking && w.it.Approval != nil || len(w.it.Questions) > 0 {
			list = append(list, w.it)
		}
	}
	slices.Reverse(list)
	return list
}

// changed are the rows that changed after a version, in their order.
func (r *room) changed(after uint64) []*row {
	found := map[int]bool{}
	for _, c := range slices.Backward(r.log) {
		if c.ver <= after {
			break
		}
		found[c.row] = true
	}
	var list []*row
	for _, n := range slices.Sorted(maps.Keys(found)) {
		list = append(list, r.rows[n])
	}
	return list
}

// draw returns the HTML of a row.
func (r *room) draw(w *row) string {
	if w.drawn != w.shape {
		w.html, w.drawn = render.Item(w.it, render.Options{Dir: r.tr.Settings.Cwd}), w.shape
	}
	return w.html
}

func (r *room) whole(id string) string {
	it := r.tr.Item(id)
	if it == nil {
		return ""
	}
	return render.Item(it, render.Options{Dir: r.tr.Settings.Cwd, Full: true})
}

// A Question is something that waits for an answer, as pages show it.
type Question struct {
	HTML  string // empty if it does not wait any more
	Shown string // the hash of what is shown, which an answer repeats
}

func (r *room) approval(call p.CallID) Question {
	dir := r.tr.Settings.Cwd
	for _, it := range r.asking() {
		if it.Approval != nil && it.Approval.Call == call {
			return Question{render.Question(it, dir), render.ShownApproval(r.id, it, dir)}
		}
	}
	return Question{}
}

func (r *room) elicitation(call p.CallID, number int) string {
	for _, it := range r.asking() {
		for _, q := range it.Questions {
			if q.Call == call && q.Number == number {
				return render.ShownElicitation(r.id, q)
			}
		}
	}
	return ""
}

// A Diff is what a turn has changed in files.
type Diff struct {
	Turn  p.TurnID   `json:"turn"`  // 0 if there is none
	Diff  string     `json:"diff"`  // in git's format
	Turns []p.TurnID `json:"turns"` // those that changed files
}

func (r *room) diff(turn p.TurnID) Diff {
	d := Diff{Turn: turn, Turns: slices.Sorted(maps.Keys(r.diffs))}
	d.Turns = slices.DeleteFunc(d.Turns, func(t p.TurnID) bool { return r.diffs[t] == "" })
	if turn == 0 && len(d.Turns) > 0 {
		d.Turn = d.Turns[len(d.Turns)-1]
	}
	d.Diff = r.diffs[d.Turn]
	return d
}
