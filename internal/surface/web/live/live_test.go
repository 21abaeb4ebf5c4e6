package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

// A rig is a hub over an engine whose model says what the test says.
type rig struct {
	t     *testing.T
	e     *engine.Local
	hub   *Hub
	id    p.ConversationID
	words chan string // an empty one ends the answer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, words: make(chan string)}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := engine.Open(ctx, engine.Config{Store: memory.New(), Model: engine.ModelFunc(r.model)})
	if err != nil {
		t.Fatal(err)
	}
	r.e = e
	r.hub = NewHub(ctx, Options{Engine: e})
	t.Cleanup(func() { cancel(); _ = e.Shutdown(context.WithoutCancel(ctx)) })
	if r.id, err = e.Create(ctx, p.Settings{Cwd: "/w"}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) model(ctx context.Context, _ engine.Request, reply *engine.Reply) error {
	for {
		select {
		case w := <-r.words:
			if w == "" {
				return nil
			}
			reply.Text(w)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *rig) say() {
	r.t.Helper()
	if _, err := r.e.Submit(r.t.Context(), r.id, p.UserTurn{Content: p.Text("go")}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open(have Have) *View {
	r.t.Helper()
	v, err := r.hub.Open(r.t.Context(), r.id, have)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(v.Close)
	return v
}

// next has a page wait, does something, and returns what the page was given.
func (r *rig) next(v *View, do func()) *Update {
	r.t.Helper()
	got := make(chan *Update, 1)
	go func() {
		u, err := v.Next(r.t.Context())
		if err == nil {
			got <- u
		}
	}()
	synctest.Wait()
	do()
	synctest.Wait()
	select {
	case u := <-got:
		return u
	default:
		r.t.Fatal("the page was given nothing")
		return nil
	}
}

func TestAPageThatWaitsIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		v := r.open(Have{})
		if u := r.next(v, func() {}); !u.Reset || u.State == nil {
			t.Errorf("first: %+v", u)
		}
		u := r.next(v, r.say)
		for u.State.Phase != "working" {
			u = r.next(v, func() {})
		}
	})
}

// killed is an engine with one conversation, whose turn another process runs until it is killed.
type killed struct {
	engine.Engine
	dead bool
}

func (e *killed) List(context.Context, engine.ListOptions) (engine.Page, error) {
	return engine.Page{Items: []engine.Summary{{ID: "c", Turns: 1}}}, nil
}

func (e *killed) Resume(context.Context, p.ConversationID) (engine.Snapshot, error) {
	return engine.Snapshot{Active: !e.dead}, nil
}

func TestTheListNoticesAKilledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &killed{}
		l := &Lobby{e: e, ctx: t.Context()}
		l.look()
		before := l.rows[0].Phase
		e.dead = true // which changes nothing in the list of conversations
		time.Sleep(aliveEvery)
		l.look()
		if after := l.rows[0].Phase; before != "working" || after != "ended" {
			t.Errorf("%s, then %s; want working, then ended", before, after)
		}
	})
}

// damaged is an engine whose list cannot be read, or panics, until it is mended.
type damaged struct {
	killed
	panics, mended bool
}

func (e *damaged) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	switch {
	case e.mended:
		return e.killed.List(ctx, o)
	case e.panics:
		panic("no list")
	}
	return engine.Page{}, errors.New("no list")
}

// A list that cannot be read is answered at once, with the reason, which goes when the list can be read.
func TestListThatCannotBeRead(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := &damaged{panics: panics}
			l := NewLobby(t.Context(), Options{Engine: e})
			begun := time.Now()
			first, err := l.Next(t.Context(), 0)
			if err != nil || len(first.Rows) != 0 || len(first.Unread) != 1 || !strings.Contains(first.Unread[0], "no list") || time.Since(begun) != 0 {
				t.Fatalf("%+v, %v, after %v", first, err, time.Since(begun))
			}
			synctest.Wait()
			e.mended = true
			next, err := l.Next(t.Context(), first.Ver)
			if err != nil || len(next.Rows) != 1 || len(next.Unread) != 0 {
				t.Errorf("%+v, %v", next, err)
			}
			synctest.Wait()
			e.mended = false // what is known stays, with the reason why it may be old
			last, err := l.Next(t.Context(), next.Ver)
			if err != nil || len(last.Rows) != 1 || len(last.Unread) != 1 {
				t.Errorf("%+v, %v", last, err)
			}
		})
	}
}

// Of a text that is open a page gets the blocks that it has not, whether it stays or comes back.
func TestOpenBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.say()
		r.words <- "first\n\nsecond\n\nthi"
		synctest.Wait()
		v := r.open(Have{})
		u := r.next(v, func() {})
		last := u.Items[len(u.Items)-1]
		if !last.Open || last.From != 0 || len(last.Blocks) != 2 || !strings.Contains(last.Blocks[1], "second") {
			t.Fatalf("first: %+v", last)
		}
		u = r.next(v, func() { r.words <- "rd\nmore\n" })
		if last = u.Items[0]; len(u.Items) != 1 || last.HTML != nil || last.From != 1 || !strings.Contains(strings.Join(last.Blocks, ""), "second") || strings.Contains(strings.Join(last.Blocks, ""), "first") {
			t.Errorf("then: %+v", u.Items)
		}
		back := r.open(Have{Cursor: u.Cursor, Open: map[string]int64{last.ID: 1, "9.9.9": 3}})
		u = r.next(back, func() {})
		if len(u.Items) != 1 || u.Reset || u.Items[0].HTML != nil || u.Items[0].From != 1 || strings.Contains(strings.Join(u.Items[0].Blocks, ""), "first") {
			t.Errorf("back: %+v", u)
		}
		if len(u.Gone) != 1 || u.Gone[0] != "9.9.9" {
			t.Errorf("gone: %v", u.Gone)
		}
		u = r.next(v, func() { r.words <- "" })
		if last := u.Items[0]; last.Open || last.HTML == nil || !strings.Contains(*last.HTML, "first") {
			t.Errorf("at the end: %+v", u)
		}
		for u.State.Phase != "ready" { // the message ends before the turn does
			u = r.next(v, func() {})
		}
	})
}
