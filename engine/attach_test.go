package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	p "github.com/fermata-agent/fermata/protocol"
)

// attached is what somebody who attached has been given, with "LIVE" where the
// past ended.
type attached struct {
	lines  chan string
	cancel context.CancelFunc
}

func attachTo(t *testing.T, e engine.Engine, id p.ConversationID, after p.Cursor) *attached {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attached{make(chan string, 10000), cancel}
	go func() {
		defer close(a.lines)
		for ev, err := range e.Attach(ctx, id, after, func() { a.lines <- "LIVE" }) {
			if err != nil {
				return
			}
			a.lines <- enginetest.Line(ev)
		}
	}()
	return a
}

// all is everything so far.
func (a *attached) all() []string {
	synctest.Wait()
	var list []string
	for len(a.lines) > 0 {
		list = append(list, <-a.lines)
	}
	return list
}

func TestAttachTellsWhereThePastEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		past := func(a *attached) (last string, n int) {
			t.Helper()
			lines := a.all()
			i := slices.Index(lines, "LIVE")
			if i < 0 || i != len(lines)-1 {
				t.Fatalf("the past has no end, or not there: %q", lines)
			}
			if i == 0 {
				return "", 0
			}
			return lines[i-1], i
		}

		if _, n := past(attachTo(t, e, id, 0)); n != 1 {
			t.Errorf("a new conversation has %d events", n)
		}
		e.Say(id, "hi")
		m := e.Request()
		before := attachTo(t, e, id, 0)
		last, n := past(before) // nothing is said yet, and nobody is kept waiting
		if n < 3 {
			t.Errorf("before the first word: %d events, the last %q", n, last)
		}
		m.Delta("Half ")
		m.Delta("a sen")
		synctest.Wait()
		middle := attachTo(t, e, id, 0)
		if got, with := past(middle); got != "delta 1.1.0 0 Half a sen" || with != n+1 {
			t.Errorf("in mid-sentence: %d events, the last %q", with, got)
		}
		if got, with := past(attachTo(t, e, id, p.Cursor(n))); got != "delta 1.1.0 0 Half a sen" || with != 1 {
			t.Errorf("in mid-sentence, after a cursor: %d events, the last %q", with, got)
		}
		m.Delta("tence")
		if d := cmp.Diff([]string{"delta 1.1.0 10 tence"}, middle.all()); d != "" {
			t.Errorf("what comes after (-want +got):\n%s", d)
		}
		m.Answer("Half a sentence")
		synctest.Wait()
		if got, with := past(attachTo(t, e, id, 0)); with != n+3 {
			t.Errorf("when it is over: %d events, the last %q", with, got)
		}
	})
}

// What is recorded and on its way to the disk is of the past. Output that was given before it
// is not waited for again.
func TestAttachWhileTheDiskIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
		e := enginetest.New(t, enginetest.Options{Store: slow})
		id := e.Begin()
		e.Say(id, "hi")
		job := e.Job()
		m := e.Request()
		m.Call("c", "work", "{}")
		m.End()
		run := e.Run()
		if err := run.Keep(job, "1"); err != nil {
			t.Fatal(err)
		}
		job.Print("listening")
		run.Finish("it runs")
		m = e.Request()
		m.Delta("Do")
		m.Answer("Done")
		time.Sleep(time.Millisecond) // the owner has recorded the end of the turn; the disk takes its time
		a := attachTo(t, e, id, 0)
		if lines := a.all(); slices.Contains(lines, "LIVE") || !slices.Contains(lines, "delta 0.0.1 0 listening") {
			t.Errorf("before the disk is done: %q", lines)
		}
		time.Sleep(3 * time.Second)
		lines := a.all()
		if n := len(lines); n < 2 || lines[n-1] != "LIVE" || lines[n-2] != "turn_ended completed" {
			t.Errorf("when it is done: %q", lines)
		}
	})
}

// A model that never pauses, however quick the reader is, does not hold up the end of the past.
func TestAttachToOneWhoNeverPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		e.Say(id, "hi")
		m := e.Request()
		m.Delta("one ")
		synctest.Wait()
		live, pieces := false, 0
		for ev, err := range e.Attach(t.Context(), id, 0, func() { live = true }) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ev.Body.(*p.Delta); !ok {
				continue
			}
			if pieces++; pieces == 2 {
				break
			}
			m.Delta("more ") // before the reader asks again
		}
		if !live {
			t.Error("the second piece is not new")
		}
	})
}

// A text that is open behind one that is being closed is of the past, too.
func TestAttachBetweenTwoTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
		e := enginetest.New(t, enginetest.Options{Store: slow})
		id := e.Begin()
		e.Say(id, "hi")
		m := e.Request()
		m.Delta("first")
		m.Message("first")
		m.Delta("second")
		time.Sleep(time.Millisecond)
		a := attachTo(t, e, id, 0)
		time.Sleep(3 * time.Second)
		lines := a.all()
		if n := len(lines); n < 3 || lines[n-1] != "LIVE" || lines[n-2] != "delta 1.1.1 0 second" || lines[n-3] != "assistant_message first" {
			t.Errorf("the past is %q", lines)
		}
	})
}

func TestAttachToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		a := attachTo(t, e, p.NewConversationID(time.Now()), 0)
		if lines := a.all(); len(lines) != 0 {
			t.Errorf("told %q", lines)
		}
		if _, open := <-a.lines; open {
			t.Error("it goes on")
		}
	})
}

// Whenever somebody attaches, what is given of each item adds up to the item, and
// every event is given once, in order.
func TestAttachAtAnyTime(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { attachAtRandom(t, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func attachAtRandom(t *testing.T, r *rand.Rand) {
	talk := &sayer{waits: make(chan time.Duration)}
	e := enginetest.New(t, enginetest.Options{Config: func(cfg *engine.Config) {
		cfg.Model = native.Model(talk)
	}})
	id := e.Begin()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for {
			select {
			case talk.waits <- time.Duration(r.IntN(20)) * time.Millisecond:
			case <-ctx.Done():
				return
			}
		}
	}()
	var all []*story
	e.Say(id, "hi")
	for range 20 {
		all = append(all, follow(t, e, id))
		time.Sleep(7 * time.Millisecond)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for i, s := range all {
		if s.lives != 1 {
			t.Errorf("client %d: live was called %d times", i, s.lives)
		}
		if !slices.Equal(s.seqs, all[0].seqs) || len(s.seqs) == 0 || s.seqs[len(s.seqs)-1] != p.Seq(len(s.seqs)) {
			t.Errorf("client %d was given %v, the first %v", i, s.seqs, all[0].seqs)
		}
		for item, text := range s.whole {
			if got := s.pieces[item]; got != "" && got != text {
				t.Errorf("client %d: the pieces of %v are %q, it is %q", i, item, got, text)
			}
		}
	}
}

// A sayer is a model that says a few sentences, a word at a time.
type sayer struct{ waits chan time.Duration }

func (m *sayer) Stream(ctx context.Context, _ model.Prompt, sink model.Sink) (model.End, error) {
	for i := range 3 {
		text := ""
		for w := range 5 {
			word := fmt.Sprintf("w%d.%d ", i, w)
			select {
			case <-time.After(<-m.waits):
			case <-ctx.Done():
				return model.End{}, context.Cause(ctx)
			}
			sink.Delta(i, p.DeltaMessage, word)
			text += word
		}
		sink.Done(i, &p.AssistantMessage{Text: text})
	}
	return model.End{}, nil
}

// A story is what one client was given.
type story struct {
	lives  int
	seqs   []p.Seq
	pieces map[p.ItemID]string
	whole  map[p.ItemID]string
}

func follow(t *testing.T, e engine.Engine, id p.ConversationID) *story {
	s := &story{pieces: map[p.ItemID]string{}, whole: map[p.ItemID]string{}}
	go func() {
		for ev, err := range e.Attach(t.Context(), id, 0, func() { s.lives++ }) {
			if err != nil {
				return
			}
			switch b := ev.Body.(type) {
			case *p.Delta:
				s.pieces[b.Item] += b.Text
				continue
			case *p.AssistantMessage:
				s.whole[b.Item] = b.Text
			}
			s.seqs = append(s.seqs, ev.Seq)
		}
	}()
	return s
}
