package live

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Row is a conversation in a list.
type Row struct {
	engine.Summary
	Phase string `json:"phase"` // working, waiting, held, ended, or new if there was no turn yet
}

// A Lobby knows what goes on in all conversations. It looks only while a page asks.
type Lobby struct {
	e engine.Engine

	panicked panics.Log

	ctx  context.Context
	asks chan *lobbyAsk
	kick chan struct{} // has room for one

	rows   []Row
	next   string
	why    []string         // rows are missing
	open   []engine.Summary // not among the latest, but something goes on in them
	openAt time.Time        // when they were looked for
	ver    uint64
	at     time.Time
	known  map[p.ConversationID]knownPhase
}

type knownPhase struct {
	at     time.Time // when the conversation was changed
	looked time.Time
	phase  string
}

type lobbyAsk struct {
	ctx   context.Context
	ver   uint64
	reply chan Rows // has room for one
}

// Rows are the conversations at some time.
type Rows struct {
	Rows   []Row
	Ver    uint64
	Next   string   // where the list continues; empty if these are all
	Unread []string // why rows are missing, one line each
}

// How often the lobby looks, and at how many conversations.
const (
	lobbyEvery = 2 * time.Second
	kickEvery  = 200 * time.Millisecond // at most
	aliveEvery = 10 * time.Second       // whether what works still does: its process may have been killed
	lobbyRows  = 60
	openEvery  = 30 * time.Second // for open conversations that were changed before those
	maxLooked  = 5000             // conversations in which one is looked for
)

// NewLobby makes a lobby, which ends with ctx.
func NewLobby(ctx context.Context, o Options) *Lobby {
	l := &Lobby{e: o.Engine, panicked: o.Panicked, ctx: ctx, asks: make(chan *lobbyAsk), kick: make(chan struct{}, 1), known: map[p.ConversationID]knownPhase{}}
	go l.run() // ends with ctx
	return l
}

// Kick says that something has changed, so that the lobby need not wait to find out.
func (l *Lobby) Kick() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Next waits until the list is not that of the version any more, and returns it. Version 0 is none.
func (l *Lobby) Next(ctx context.Context, ver uint64) (Rows, error) {
	a := &lobbyAsk{ctx, ver, make(chan Rows, 1)}
	select {
	case l.asks <- a:
	case <-l.ctx.Done():
		return Rows{}, engine.ErrClosed
	case <-ctx.Done():
		return Rows{}, context.Cause(ctx)
	}
	select {
	case r := <-a.reply:
		return r, nil
	case <-l.ctx.Done():
		return Rows{}, engine.ErrClosed
	case <-ctx.Done():
		return Rows{}, context.Cause(ctx)
	}
}

func (l *Lobby) run() {
	var waiting []*lobbyAsk
	var tick <-chan time.Time // nil while no page asks
	for {
		select {
		case a := <-l.asks:
			if a.ver == 0 && time.Since(l.at) > time.Second/2 {
				l.tryLook()
			}
			waiting = append(waiting, a)
		case <-tick:
			tick = nil
			l.tryLook()
		case <-l.kick:
			if len(waiting) == 0 {
				continue
			}
			if wait := kickEvery - time.Since(l.at); wait > 0 {
				tick = time.After(wait)
				continue
			}
			l.tryLook()
		case <-l.ctx.Done():
			return
		}
		waiting = slices.DeleteFunc(waiting, func(a *lobbyAsk) bool {
			if a.ver == l.ver {
				return a.ctx.Err() != nil
			}
			a.reply <- Rows{l.rows, l.ver, l.next, l.why}
			return true
		})
		if len(waiting) > 0 && tick == nil {
			tick = time.After(lobbyEvery)
		}
	}
}

// tryLook reads the list. If that panics, the next try may succeed.
func (l *Lobby) tryLook() {
	if err := l.panicked.Run(l.look); err != nil {
		l.publish(l.rows, l.next, []string{err.Error()})
	}
}

// look reads the list.
func (l *Lobby) look() {
	l.at = time.Now()
	page, err := l.e.List(l.ctx, engine.ListOptions{Limit: lobbyRows})
	if err != nil { // the next look may succeed
		l.publish(l.rows, l.next, []string{err.Error()})
		return
	}
	if l.at.Sub(l.openAt) >= openEvery {
		l.open, l.openAt = l.openBeyond(page.Next), l.at
	}
	items := slices.Clone(page.Items)
	for _, s := range l.open {
		if !slices.ContainsFunc(items, func(x engine.Summary) bool { return x.ID == s.ID }) {
			items = append(items, s)
		}
	}
	rows := make([]Row, 0, len(items))
	known := map[p.ConversationID]knownPhase{}
	for _, s := range items {
		k, ok := l.known[s.ID]
		if !ok || !k.at.Equal(s.Updated) || k.phase == "working" && l.at.Sub(k.looked) >= aliveEvery {
			k = knownPhase{s.Updated, l.at, l.phaseOf(s)}
		}
		known[s.ID] = k
		rows = append(rows, Row{s, k.phase})
	}
	l.known = known
	slices.SortStableFunc(rows, func(a, b Row) int { return rank(a) - rank(b) })
	l.publish(rows, page.Next, page.Unread)
}

// publish makes a new version of the list if something in it has changed.
func (l *Lobby) publish(rows []Row, next string, why []string) {
	if l.ver == 0 || !reflect.DeepEqual(rows, l.rows) || next != l.next || !slices.Equal(why, l.why) {
		l.ver++
		l.rows, l.next, l.why = rows, next, why
	}
}

// openBeyond returns the conversations after a cursor in which something goes on: one that has waited for days for an answer is
// not among the latest.
func (l *Lobby) openBeyond(cursor string) (open []engine.Summary) {
	for looked := 0; cursor != "" && looked < maxLooked; {
		page, err := l.e.List(l.ctx, engine.ListOptions{Limit: 200, Cursor: cursor})
		if err != nil {
			return open
		}
		for _, s := range page.Items {
			if s.Turns > 0 && s.Ended == "" || s.Returned > 0 {
				open = append(open, s)
			}
		}
		looked += len(page.Items)
		cursor = page.Next
	}
	return open
}

// Phase says how far a conversation is. It may be called from any goroutine.
func (l *Lobby) Phase(s engine.Summary) string { return l.phaseOf(s) }

// phaseOf says how far a conversation is. One whose process died in a turn is opened, which records that.
func (l *Lobby) phaseOf(s engine.Summary) string {
	switch {
	case s.Ended != "" || s.Unreadable != "":
		return "ended"
	case s.Turns == 0:
		return "new"
	}
	ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
	defer cancel()
	snap, err := l.e.Resume(ctx, s.ID)
	switch {
	case err != nil:
		return "working" // for another client
	case !snap.Active:
		return "ended"
	case len(snap.PendingApprovals) > 0:
		return "waiting"
	case snap.Hold != nil:
		return "held"
	}
	return "working"
}

// rank puts what goes on first.
func rank(r Row) int {
	switch r.Phase {
	case "waiting":
		return 0
	case "held":
		return 1
	case "working":
		return 2
	}
	return 3
}
