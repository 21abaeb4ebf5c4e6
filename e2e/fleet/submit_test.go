package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// queueOf opens the queue of the fleet as a member sees it.
func queueOf(t *testing.T, m *member) *fleet.Queue {
	t.Helper()
	link, err := m.store.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := fleet.OpenQueue(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// runNode has a member run turns until the test ends.
func runNode(t *testing.T, m *member) {
	t.Helper()
	if err := m.store.TakePart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := fleet.Worker{
		Queue: queueOf(t, m), Local: m.c.Local, Engine: m.c, Member: nats.Member{Name: "n", Turns: 1},
		Prepare: func(context.Context, fleet.Work) (*p.Overrides, error) { return nil, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended below
		defer close(done)
		_ = w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		time.Sleep(2 * time.Second) // the library waits for what it has asked for
	})
}

// submission is a turn that a member submits, in a conversation that it has created and released.
func submission(t *testing.T, m *member) fleet.Submission {
	t.Helper()
	id := m.Begin()
	if err := m.c.Release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return fleet.Submission{
		Queue: queueOf(t, m), Nodes: m.store.Nodes, Store: m.store, Local: m.c.Local, Engine: m.c, Wait: -1,
		Work: fleet.Work{Conversation: id, Op: p.OpJSON{Op: p.UserTurn{Content: p.Text("go")}}, Name: "op-1", Dir: "/"},
		Say:  func(string) {},
	}
}

// turnsOf counts the turns that are recorded.
func turnsOf(t *testing.T, m *member, id p.ConversationID) (turns int) {
	t.Helper()
	for e, err := range m.c.Read(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(*p.TurnStarted); ok {
			turns++
		}
	}
	return turns
}

// A client whose servers answer late has submitted its turn all the same: the turn runs once, its client follows it, and
// the record of what it did stays.
func TestLateAnswerIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		lag := &lagging{s: s}
		node := newMember(t, nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		client := newMember(t, nats.Options{Lease: time.Hour, Connect: []natsgo.Option{natsgo.InProcessServer(lag)}})
		runNode(t, node)
		sub := submission(t, client)
		lag.stall(5300 * time.Millisecond)
		go func() { // ends with the turn
			r := node.Request()
			time.Sleep(30 * time.Second)
			r.Answer("done")
		}()
		receipt, err := sub.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end, err := engine.FollowTurn(t.Context(), client.c, sub.Work.Conversation, receipt.Turn, receipt.Seq, nil)
		if err != nil || end.End.Reason != p.Completed {
			t.Errorf("the turn ended as %q, %v", end.End.Reason, err)
		}
		if n := turnsOf(t, node, sub.Work.Conversation); n != 1 {
			t.Errorf("%d turns are recorded", n)
		}
	})
}

// A client that gives up while its servers are silent deletes nothing that has begun: it finds the turn, or says that it does
// not know.
func TestGivingUpKeepsWhatHasBegun(t *testing.T) {
	for name, stall := range map[string]time.Duration{"known": 5 * time.Second, "unknown": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, &server.Options{})
				lag := &lagging{s: s}
				node := newMember(t, nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
				client := newMember(t, nats.Options{Lease: time.Hour, Connect: []natsgo.Option{natsgo.InProcessServer(lag)}})
				runNode(t, node)
				sub := submission(t, client)
				lag.stall(stall)
				go func() { // the turn ends, and the node closes its conversation, before the client hears of anything
					node.Request().Answer("done")
					node.Idle()
					if err := node.c.Release(t.Context(), sub.Work.Conversation); err != nil {
						t.Error(err)
					}
				}()
				ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("given up"))
				defer cancel()
				receipt, err := sub.Start(ctx)
				var unknown *fleet.UnknownError
				switch {
				case name == "known" && (err != nil || receipt.Turn != 1):
					t.Errorf("turn %d, %v", receipt.Turn, err)
				case name == "unknown" && (!errors.As(err, &unknown) || unknown.Conversation != sub.Work.Conversation):
					t.Errorf("turn %d, %v", receipt.Turn, err)
				}
				time.Sleep(time.Minute)
				if n := turnsOf(t, node, sub.Work.Conversation); n != 1 {
					t.Errorf("%d turns are recorded", n)
				}
			})
		})
	}
}

// What is given up before it has begun is gone, and never runs; one that waits for the same conversation notices.
func TestGivingUpWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		node, client := newMember(t, o), newMember(t, o)
		sub := submission(t, client)
		other := make(chan error, 1)
		go func() { // ends when the conversation is deleted
			_, err := sub.Start(t.Context())
			other <- err
		}()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("given up"))
		defer cancel()
		if _, err := sub.Start(ctx); !errors.Is(err, fleet.ErrWithdrawn) {
			t.Errorf("it was given up with %v", err)
		}
		if err := <-other; !errors.Is(err, fleet.ErrWithdrawn) {
			t.Errorf("the other one waits, and ends with %v", err)
		}
		runNode(t, node)
		time.Sleep(time.Minute)
		if _, err := node.c.Resume(t.Context(), sub.Work.Conversation); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("the conversation is there: %v", err)
		}
	})
}

// Work that is submitted a second time, by a script that does not know of the first, is the same turn, also if much has
// happened in its conversation since.
func TestSubmittedAgainIsTheSameTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		node, client := newMember(t, o), newMember(t, o)
		runNode(t, node)
		sub := submission(t, client)
		go func() { node.Request().Answer("done") }() // ends with the turn
		first, err := sub.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		node.Idle()
		for i := range 70 { // more ops than a conversation remembers by name
			title := fmt.Sprint("title ", i)
			if _, err := node.c.Submit(engine.WithClient(t.Context(), engine.Client{Op: title}), sub.Work.Conversation, p.Rename{Title: title}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sub.Queue.Put(t.Context(), "", sub.Work); err != nil { // as if the first client had sent it twice
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		sub.Again = true
		second, err := sub.Start(t.Context())
		if err != nil || first != second {
			t.Errorf("%+v, then %+v, %v", first, second, err)
		}
		if n := turnsOf(t, node, sub.Work.Conversation); n != 1 {
			t.Errorf("%d turns are recorded", n)
		}
	})
}
