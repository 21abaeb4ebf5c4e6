package remote_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A node is what a process has: an engine that others join, and that joins others.
type node struct {
	*enginetest.Engine
	c    *remote.Router
	host *remote.Host
}

func newNode(t *testing.T, home string) *node {
	t.Helper()
	n := &node{host: remote.NewHost(t.Context(), filepath.Join(home, "run"), "test", func(err error) { t.Error(err) })}
	store := file.New(home, file.Options{Address: n.host.Address, Join: true})
	n.Engine = enginetest.New(t, enginetest.Options{Store: store, IdleAfter: -1, IdleFollowed: -1})
	n.c = remote.NewRouter(n.Engine.Local, n.host, remote.Options{Client: "test"})
	t.Cleanup(func() { n.leave(t) })
	return n
}

// leave ends a node as a process does that is told to end.
func (n *node) leave(t *testing.T) {
	_ = n.c.Shutdown(context.WithoutCancel(t.Context())) // it may have died
}

// die ends a node as kill -9 does.
func (n *node) die() {
	n.host.Die()
	n.Engine.Kill()
}

// A reader follows a conversation.
type reader struct {
	t      *testing.T
	events chan p.Event
	ended  chan error
}

func read(t *testing.T, e engine.Engine, id p.ConversationID) *reader {
	t.Helper()
	return readFrom(t, e.Subscribe(t.Context(), id, 0))
}

func readFrom(t *testing.T, events iter.Seq2[p.Event, error]) *reader {
	t.Helper()
	r := &reader{t: t, events: make(chan p.Event, 10000), ended: make(chan error, 1)}
	go func() { // ends with the test
		for ev, err := range events {
			if err != nil {
				r.ended <- err
				return
			}
			r.events <- ev
		}
	}()
	return r
}

// until reads to a line, and fails if an event is missing or comes twice.
func (r *reader) until(line string) (lines []string) {
	r.t.Helper()
	timeout := time.After(10 * time.Minute) // the machine may be busy
	for {
		select {
		case ev := <-r.events:
			lines = append(lines, enginetest.Line(ev))
			if enginetest.Line(ev) == line {
				return lines
			}
		case err := <-r.ended:
			r.t.Fatalf("the follower ended with %v after %q", err, lines)
		case <-timeout:
			r.t.Fatalf("no %q in %q", line, lines)
		}
	}
}

func say(t *testing.T, e engine.Engine, id p.ConversationID, text string) p.Receipt {
	t.Helper()
	receipt, err := e.Submit(t.Context(), id, p.UserTurn{Content: p.Text(text)})
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func create(t *testing.T, e engine.Engine) p.ConversationID {
	t.Helper()
	id, err := e.Create(t.Context(), p.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSecondProcessJoins(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seenA, seenB := read(t, a.c, id), read(t, b.c, id)

	say(t, b.c, id, "from b") // a runs it
	a.Request().Answer("hello")
	seenA.until("turn_ended completed")
	seenB.until("turn_ended completed")

	say(t, a.c, id, "from a")
	q := a.Request()
	q.Delta("I beg")
	seenB.until("delta 2.1.0 0 I beg")
	if _, err := b.c.Submit(t.Context(), id, p.Interrupt{}); err != nil {
		t.Fatal(err)
	}
	seenA.until("turn_ended interrupted")
	seenB.until("turn_ended interrupted")

	if snap, err := b.c.Resume(t.Context(), id); err != nil || snap.Turn != 2 || snap.Active {
		t.Errorf("%+v, %v", snap, err)
	}
	if _, err := b.c.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, engine.ErrNothingToStop) {
		t.Errorf("error %v", err)
	}
}

func TestApprovalFromTheOtherProcess(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seenB := read(t, b.c, id)
	say(t, a.c, id, "go")
	q := a.Request()
	q.Call("c", "work", "{}")
	q.End()
	a.Run().Ask("rm", "-r")
	seenB.until("approval_requested 1.1.0")
	snap, err := b.c.Resume(t.Context(), id)
	if err != nil || len(snap.PendingApprovals) != 1 {
		t.Fatalf("%+v, %v", snap, err)
	}
	if _, err := b.c.Submit(t.Context(), id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved}); err != nil {
		t.Fatal(err)
	}
	a.Run().Finish("done")
	a.Request().Answer("ok")
	seenB.until("turn_ended completed")
}

// When the owner is killed in mid-turn one of its clients takes over, and the
// other one joins that.
func TestTakeOverFromADeadOwner(t *testing.T) {
	home := t.TempDir()
	a, b, c := newNode(t, home), newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seenB, seenC := read(t, b.c, id), read(t, c.c, id)
	say(t, a.c, id, "go")
	a.Request().Delta("half a sen")
	seenB.until("delta 1.1.0 0 half a sen")
	seenC.until("delta 1.1.0 0 half a sen")
	a.die()
	seenB.until("turn_ended crashed")
	seenC.until("turn_ended crashed")

	owner := b
	if b.c.Joined(id) != 0 {
		owner = c
	}
	say(t, b.c, id, "from b")
	owner.Request().Answer("here")
	seenB.until("turn_ended completed")
	seenC.until("turn_ended completed")
	say(t, c.c, id, "from c")
	owner.Request().Answer("here")
	seenB.until("turn_ended completed")
	seenC.until("turn_ended completed")
}

func TestOwnerLeavesInGoodOrder(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seenB := read(t, b.c, id)
	say(t, a.c, id, "go")
	a.Request()
	seenB.until("model_requested 1")
	a.leave(t)
	seenB.until("turn_ended interrupted")
	say(t, b.c, id, "and now me")
	b.Request().Answer("yes")
	seenB.until("turn_ended completed")
	if left, err := os.ReadDir(filepath.Join(home, "run")); err != nil || len(left) != 1 {
		t.Errorf("sockets %v, %v", left, err)
	}
}

// A conversation that is released is opened by whoever needs it, and those that
// follow it elsewhere come along.
func TestReleasedConversationMoves(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seenA, seenB := read(t, a.c, id), read(t, b.c, id)
	say(t, a.c, id, "go")
	a.Request().Answer("one")
	seenA.until("turn_ended completed")
	seenB.until("turn_ended completed")
	if err := a.c.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	say(t, b.c, id, "mine")
	b.Request().Answer("two")
	seenB.until("turn_ended completed")
	seenA.until("turn_ended completed")
	say(t, a.c, id, "both")
	b.Request().Answer("three")
	seenA.until("turn_ended completed")
	seenB.until("turn_ended completed")
}

func TestArchiveByAClient(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	if err := b.c.Archive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	page, err := b.c.List(t.Context(), engine.ListOptions{Archived: true})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// An owner whose socket is gone is not waited for for ever.
func TestOwnerThatCannotBeReached(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	a.host.Die()
	b.c.TryOnce()
	var locked *engine.LockedError
	if _, err := b.c.Resume(t.Context(), id); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("error %v", err)
	}
}

// A process that is told to end before it has opened anything ends, also if a conversation is
// opened a moment later.
func TestLeaveBeforeAnythingIsOpen(t *testing.T) {
	n := newNode(t, t.TempDir())
	n.c.Leave()
	create(t, n.c)
	n.leave(t) // it does not wait for anybody
	if address := n.host.Address(); address != "" {
		t.Errorf("it listens at %s", address)
	}
}

// A client is told when the process that ran its conversation is gone, how it went, and who is next.
func TestMoveIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*testing.T, *node)
		died bool
	}{
		"dies":   {func(_ *testing.T, n *node) { n.die() }, true},
		"leaves": {func(t *testing.T, n *node) { n.leave(t) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			a, b := newNode(t, home), newNode(t, home)
			moves := make(chan remote.Move, 10)
			b.c.OnMove(func(_ p.ConversationID, m remote.Move) { moves <- m })
			id := create(t, a.c)
			seen := read(t, b.c, id)
			say(t, a.c, id, "go")
			a.Request().Answer("one")
			seen.until("turn_ended completed")
			c.end(t, a)
			select {
			case got := <-moves:
				if want := (remote.Move{From: os.Getpid(), Died: c.died}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			case err := <-seen.ended:
				t.Fatalf("the follower ended with %v", err)
			}
			say(t, b.c, id, "and now me")
			b.Request().Answer("two")
			seen.until("turn_ended completed")
			if len(moves) > 0 {
				t.Errorf("told again: %+v", <-moves)
			}
		})
	}
}

// Whoever only watches follows the owner, reads the journal while there is none, and never opens the conversation.
func TestWatch(t *testing.T) {
	home := t.TempDir()
	a, b, c := newNode(t, home), newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	seen := readFrom(t, c.c.Watch(t.Context(), id))
	say(t, a.c, id, "go")
	q := a.Request()
	q.Delta("half")
	seen.until("delta 1.1.0 0 half")
	if n := c.host.Clients() + b.host.Clients(); n != 0 || a.host.Clients() != 1 {
		t.Errorf("the owner has %d clients, others %d", a.host.Clients(), n)
	}
	a.die()
	if _, open, err := c.c.Owner(t.Context(), id); err != nil || open {
		t.Errorf("it was opened: %v, %v", open, err)
	}
	say(t, b.c, id, "from b")
	b.Request().Answer("here")
	seen.until("turn_ended crashed")
	seen.until("turn_ended completed")
	if _, err := b.c.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, engine.ErrNothingToStop) {
		t.Error(err)
	}
	if err := b.c.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	say(t, b.c, id, "again")
	b.Request().Answer("yes")
	seen.until("turn_ended completed")
}

// Whoever reads the journal of a conversation that no process has open joins the process that opens it.
func TestWatchUntilOpened(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	if err := a.c.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	seen := readFrom(t, b.c.Watch(t.Context(), id))
	seen.until("conversation_started")
	for range 2 {
		for joined := false; !joined; joined = a.host.Clients() == 1 {
			say(t, a.c, id, "go")
			a.Request().Answer("yes")
			seen.until("turn_ended completed")
		}
	}
}

// What another owner gives from the beginning is given on from where it was left.
func TestTextIsGivenOnce(t *testing.T) {
	item, other := p.ItemID{Turn: 1, Response: 1}, p.ItemID{Turn: 1, Response: 1, Index: 1}
	fresh := remote.Fresh()
	for _, c := range []struct {
		body p.Body
		want string
	}{
		{&p.Delta{Item: item, Text: "abc"}, "0 abc"},
		{&p.Delta{Item: item, Text: "abc"}, ""},
		{&p.Delta{Item: item, Text: "abcde"}, "3 de"},
		{&p.Delta{Item: item, Offset: 2, Text: "c"}, ""},
		{&p.Delta{Item: item, Offset: 4, Text: "efg"}, "5 fg"},
		{&p.Delta{Item: other, Text: "x"}, "0 x"},
		{&p.Delta{Item: item, Offset: 7, Text: "h"}, "7 h"},
		{&p.TurnEnded{}, "end"},
		{&p.Delta{Item: item, Text: "abc"}, "0 abc"}, // what was seen of a turn that ended is forgotten
	} {
		got := ""
		if ev, ok := fresh(p.Event{Turn: 1, Body: c.body}); ok {
			got = "end"
			if d, isDelta := ev.Body.(*p.Delta); isDelta {
				got = fmt.Sprintf("%d %s", d.Offset, d.Text)
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.body, got, c.want)
		}
	}
}
