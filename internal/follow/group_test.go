package follow_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A taker is a follower played by the test: it takes an event only when it is told to.
type taker struct {
	lines  chan string
	cancel context.CancelFunc
	slow   chan struct{} // nil: it takes everything at once
}

func join(t *testing.T, g *follow.Group, after p.Cursor, slow chan struct{}) *taker {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &taker{make(chan string, 10000), cancel, slow}
	f, err := g.Join(ctx, follow.Options{After: after, Live: func() { a.lines <- "LIVE" }})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with ctx
		for e, err := range f.Events(ctx) {
			if err != nil {
				a.lines <- "ERROR " + err.Error()
				return
			}
			if a.slow != nil {
				select {
				case <-a.slow:
				case <-ctx.Done():
					return
				}
			}
			a.lines <- enginetest.Line(e)
		}
	}()
	return a
}

// all is what it has taken since it was asked last.
func (a *taker) all() []string {
	synctest.Wait()
	var list []string
	for len(a.lines) > 0 {
		list = append(list, <-a.lines)
	}
	return list
}

// What a follower gets does not depend on when it joins, or on who else follows.
func TestJoinGivesTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		first := join(t, g, 0, nil)
		e.Say(id, "hi")
		m := e.Request()
		m.Delta("Half-")
		middle := join(t, g, 0, nil)
		synctest.Wait()
		m.Delta("a-sentence")
		m.Message("Half-a-sentence")
		synctest.Wait()
		if got := join(t, g, 0, nil).all(); got[len(got)-2] != "assistant_message Half-a-sentence" {
			t.Errorf("text that is finished is given as open: %q", got)
		}
		m.End()
		synctest.Wait()
		last := join(t, g, 0, nil)
		want := finished(first.all())
		for name, a := range map[string]*taker{"in mid-sentence": middle, "afterwards": last} {
			if d := cmp.Diff(want, finished(a.all())); d != "" {
				t.Errorf("joined %s (-first +it):\n%s", name, d)
			}
		}
		after := join(t, g, p.Cursor(len(want)), nil)
		if d := cmp.Diff([]string{"LIVE"}, after.all()); d != "" {
			t.Errorf("joined after the last event (-want +got):\n%s", d)
		}
	})
}

// finished leaves out what is not an event on record.
func finished(lines []string) []string {
	var list []string
	for _, l := range lines {
		if l != "LIVE" && !strings.HasPrefix(l, "delta ") {
			list = append(list, l)
		}
	}
	return list
}

// The text so far comes before the word that the past has ended, in one piece, and goes on from there.
func TestJoinInMidSentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		e.Say(id, "hi")
		m := e.Request()
		m.Delta("one-")
		synctest.Wait()
		first := join(t, g, 3, nil)
		m.Delta("two-")
		synctest.Wait()
		second := join(t, g, 3, nil)
		m.Delta("three")
		for name, want := range map[*taker][]string{
			first:  {"delta 1.1.0 0 one-", "LIVE", "delta 1.1.0 4 two-", "delta 1.1.0 8 three"},
			second: {"delta 1.1.0 0 one-two-", "LIVE", "delta 1.1.0 8 three"},
		} {
			got := name.all()
			if i := len(got) - len(want); i >= 0 {
				got = got[i:]
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
	})
}

// The end of a turn counts as taken when the slowest follower has taken it, or has left.
func TestEndedWaitsForTheSlowest(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := enginetest.New(t, enginetest.Options{})
			id := e.Begin()
			g := follow.New(e, id)
			e.Say(id, "an earlier turn")
			e.Request().Answer("Yes")
			synctest.Wait()
			r := e.Say(id, "hi")
			m := e.Request()
			slow := make(chan struct{})
			quick, slug := join(t, g, r.Seq, nil), join(t, g, r.Seq, slow)
			m.Answer("Hello")
			synctest.Wait()
			ended := make(chan struct{})
			go func() { g.Ended(t.Context(), r.Turn); close(ended) }()
			synctest.Wait()
			for range 3 { // the request and the message, up to the one before the end
				select {
				case slow <- struct{}{}:
				case <-ended:
					t.Fatal("the end counts as taken before it was")
				}
				synctest.Wait()
			}
			select {
			case <-ended:
				t.Errorf("the end counts as taken before it was; taken: %q", slug.all())
			default:
			}
			if leaves {
				slug.cancel()
			} else {
				close(slow)
			}
			<-ended
			if got := quick.all(); !strings.HasPrefix(got[len(got)-1], "turn_ended") {
				t.Errorf("the quick one was given the end after all: %q", got)
			}
		})
	}
}

// The end of one turn does not count as that of the next.
func TestEndedOfTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		a := join(t, g, 0, nil)
		e.Say(id, "one")
		e.Request().Answer("One")
		synctest.Wait()
		r := e.Say(id, "two")
		m := e.Request()
		ended := make(chan struct{})
		go func() { g.Ended(t.Context(), r.Turn); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Errorf("taken: %q", a.all())
		default:
		}
		m.Answer("Two")
		<-ended
	})
}

// Nobody is waited for who does not follow, and an old turn has ended long ago.
func TestEndedWithoutFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		r := e.Say(id, "hi")
		e.Request().Answer("Hello")
		g.Ended(t.Context(), r.Turn)
		a := join(t, g, 0, nil)
		a.all()
		g.Ended(t.Context(), r.Turn)
		a.cancel()
		synctest.Wait()
		g.Ended(t.Context(), r.Turn+1) // no client follows: nothing to wait for
	})
}

// When the last one leaves, nothing is left, and the next one begins anew.
func TestLeaveAndJoinAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		a := join(t, g, 0, nil)
		had := len(a.all()) - 1
		a.cancel()
		synctest.Wait()
		e.Say(id, "hi")
		e.Request().Answer("Hello")
		synctest.Wait()
		b := join(t, g, p.Cursor(had), nil)
		got := b.all()
		if len(got) < 3 || got[len(got)-1] != "LIVE" || !strings.HasPrefix(got[len(got)-2], "turn_ended") {
			t.Errorf("joined again: %q", got)
		}
	})
}

// A conversation that is closed ends all its followers with an error.
func TestClosedConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		a, b := join(t, g, 0, nil), join(t, g, 0, nil)
		synctest.Wait()
		if err := e.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, a := range []*taker{a, b} {
			got := a.all()
			if !strings.HasPrefix(got[len(got)-1], "ERROR") {
				t.Errorf("got %q", got)
			}
		}
		if _, err := g.Join(t.Context(), follow.Options{}); err == nil {
			t.Error("a conversation that is not there can be followed")
		}
	})
}

// Random followers that join, dawdle and leave at any time each get every event once and in order,
// and text that adds up.
func TestRandomFollowers(t *testing.T) {
	for seed := range uint64(longtest.Default(200, 80)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			e := enginetest.New(t, enginetest.Options{})
			id := e.Begin()
			g := follow.New(e, id)
			var all []*taker
			keep := join(t, g, 0, nil)
			for range 4 {
				e.Say(id, "hi")
				m := e.Request()
				text := ""
				for range r.IntN(6) {
					m.Delta("word-")
					text += "word-"
					if r.IntN(2) == 0 {
						time.Sleep(time.Millisecond)
					}
					switch r.IntN(4) {
					case 0:
						all = append(all, join(t, g, 0, nil))
					case 1:
						if len(all) > 0 {
							all[r.IntN(len(all))].cancel()
						}
					}
				}
				m.Answer(text + "end")
				synctest.Wait()
			}
			want := finished(keep.all())
			for i, a := range all {
				lines := a.all()
				got := finished(lines)
				if n := len(got); n > 0 && strings.HasPrefix(got[n-1], "ERROR") {
					got = got[:n-1]
				}
				if d := cmp.Diff(want[:min(len(got), len(want))], got); d != "" {
					t.Fatalf("seed %d, follower %d (-want +got):\n%s", seed, i, d)
				}
				addsUp(t, lines)
			}
		})
	}
}

// addsUp checks that each piece of a text begins where the one before it ended.
func addsUp(t *testing.T, lines []string) {
	t.Helper()
	at := map[string]int{}
	for _, l := range lines {
		rest, ok := strings.CutPrefix(l, "delta ")
		if !ok {
			continue
		}
		item, rest, _ := strings.Cut(rest, " ")
		offset, text, _ := strings.Cut(rest, " ")
		if want := strconv.Itoa(at[item]); offset != want {
			t.Fatalf("%q begins at %s, want %s", l, offset, want)
		}
		at[item] += len(text)
	}
}

// A follower that asks to be first is, although it joined last.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		var order []string
		for _, name := range []string{"one", "two", "first"} {
			f, err := g.Join(t.Context(), follow.Options{After: 1, First: name == "first", Live: func() {}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { // ends with the test
				for e := range f.Events(t.Context()) {
					if e.Seq == 2 {
						order = append(order, name)
					}
				}
			}()
		}
		e.Say(id, "hi")
		e.Request().Answer("Hello")
		synctest.Wait()
		if d := cmp.Diff([]string{"first", "one", "two"}, order); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// Whoever knows an event that the group has yet to read is given what comes after that one only.
func TestJoinAheadOfTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		slow := make(chan struct{})
		join(t, g, 1, slow) // holds the group up
		e.Say(id, "hi")
		e.Request().Answer("Hello")
		synctest.Wait()
		var ahead *taker
		joined := make(chan struct{})
		go func() { ahead = join(t, g, 4, nil); close(joined) }()
		close(slow)
		<-joined
		synctest.Wait()
		got := ahead.all()
		live := len(got)
		got = slices.DeleteFunc(got, func(line string) bool { return line == "LIVE" })
		if live -= len(got); live != 1 { // when depends on who comes first: the end, or the one that joins
			t.Errorf("live %d times", live)
		}
		if d := cmp.Diff([]string{"assistant_message Hello", "model_ended", "turn_ended completed"}, got); d != "" {
			t.Errorf("after the request (-want +got):\n%s", d)
		}
	})
}

// Of the output of a command that prints without end, a newcomer is given the end; the group does not keep it all.
func TestLongOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		g := follow.New(e, id)
		join(t, g, 1, nil)
		e.Say(id, "go")
		m := e.Request()
		m.Call("c", "work", "{}")
		m.End()
		run := e.Run()
		piece := strings.Repeat("ab€", 10_000)
		for range 100 {
			run.Print(piece)
			synctest.Wait()
		}
		got := join(t, g, 1, nil).all()
		text := got[len(got)-2] // before LIVE
		if len(text) > 3<<20 || len(text) < 1<<20 || !strings.HasSuffix(text, "ab€") || !utf8.ValidString(text) {
			t.Errorf("%d bytes of output, %q…", len(text), text[:min(len(text), 50)])
		}
		run.Finish("done")
		e.Request().Answer("done")
	})
}
