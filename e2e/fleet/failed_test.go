package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A fakeNode takes work until the test ends, and prepares it as the test says.
func fakeNode(t *testing.T, m *member, name string, prepare func(context.Context) error) {
	t.Helper()
	w := fleet.Worker{
		Queue: queueOf(t, m), Local: m.c.Local, Engine: m.c, Member: nats.Member{Name: name, Turns: 1},
		Prepare: func(ctx context.Context, _ fleet.Work) (*p.Overrides, error) { return nil, prepare(ctx) },
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

// failed returns the list of failed work.
func failed(t *testing.T, q *fleet.Queue) (list []fleet.Waiting) {
	t.Helper()
	all, _, err := q.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if w.Failed {
			list = append(list, w)
		}
	}
	return list
}

// Work at which machines fail three times goes to the list of failed work, its client learns that, and it runs once if it is tried again.
func TestFailedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		node, client := newMember(t, o), newMember(t, o)
		broken := errors.New("the disk is full")
		tries := 0
		fakeNode(t, node, "a", func(context.Context) error { tries++; return broken })
		sub := submission(t, client)
		_, err := sub.Start(t.Context())
		var failure *fleet.FailedError
		if !errors.As(err, &failure) || failure.Last.Node != "a" || failure.Last.Why != broken.Error() || tries != 3 {
			t.Fatalf("after %d tries: %v", tries, err)
		}
		time.Sleep(10 * time.Minute)
		list := failed(t, sub.Queue)
		if tries != 3 || len(list) != 1 || list[0].Conversation != sub.Work.Conversation || len(list[0].Failures) != 3 {
			t.Fatalf("after %d tries the list is %+v", tries, list)
		}
		broken = nil
		if err := sub.Queue.Retry(t.Context(), list[0].Number); err != nil {
			t.Fatal(err)
		}
		node.Request().Answer("done")
		if n := turnsOf(t, node, sub.Work.Conversation); n != 1 || len(failed(t, sub.Queue)) != 0 {
			t.Errorf("%d turns, failed %+v", n, failed(t, sub.Queue))
		}
		if err := sub.Queue.Retry(t.Context(), list[0].Number); !errors.Is(err, fleet.ErrNoSuchWork) {
			t.Errorf("a second retry: %v", err)
		}
	})
}

// Machines that do not suit have not failed, however often the work comes to them; one that suits gets it.
func TestUnsuitableMachinesHaveNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		a, b, client := newMember(t, o), newMember(t, o), newMember(t, o)
		fakeNode(t, a, "a", func(context.Context) error { return &fleet.UnsuitableError{Err: errors.New("no such directory")} })
		sub := submission(t, client)
		if _, err := sub.Queue.Put(t.Context(), "", sub.Work); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		all, _, err := sub.Queue.List(t.Context())
		if err != nil || len(all) != 1 || all[0].Failed || all[0].Last == nil || all[0].Last.Why != "no such directory" {
			t.Fatalf("%+v, %v", all, err)
		}
		fakeNode(t, b, "b", func(context.Context) error { return nil })
		b.Request().Answer("done")
		time.Sleep(time.Second)
		if all, _, err := sub.Queue.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Work that takes its machines with it goes to the list as well: they cannot say that they failed.
func TestWorkThatKillsItsMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		client := newMember(t, o)
		sub := submission(t, client)
		if _, err := sub.Queue.Put(t.Context(), "", sub.Work); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			m, taken := newMember(t, o), make(chan struct{})
			fakeNode(t, m, "dies", func(ctx context.Context) error { close(taken); <-ctx.Done(); return context.Cause(ctx) })
			<-taken
			m.die(t)
		}
		last := newMember(t, o)
		fakeNode(t, last, "last", func(context.Context) error { t.Error("it was tried a fourth time"); return nil })
		time.Sleep(5 * time.Minute)
		list := failed(t, sub.Queue)
		if len(list) != 1 || len(list[0].Failures) != 3 || !strings.Contains(list[0].Failures[0].Why, "ended or was cut off") {
			t.Fatalf("the list is %+v", list)
		}
		if _, err := sub.Queue.Drop(t.Context(), list[0].Number); err != nil || len(failed(t, sub.Queue)) != 0 {
			t.Errorf("drop: %v, %+v", err, failed(t, sub.Queue))
		}
		if n := turnsOf(t, client, sub.Work.Conversation); n != 0 {
			t.Errorf("%d turns", n)
		}
	})
}

// A client that waits for work which is dropped ends, and nothing has run.
func TestDroppedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		client := newMember(t, nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		sub := submission(t, client)
		ended := make(chan error, 1)
		go func() { // ends when the work is dropped
			_, err := sub.Start(t.Context())
			ended <- err
		}()
		time.Sleep(time.Minute)
		all, _, err := sub.Queue.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if err := sub.Queue.Retry(t.Context(), all[0].Number); !errors.Is(err, fleet.ErrNotFailed) {
			t.Errorf("retry of work that waits: %v", err)
		}
		if _, err := sub.Queue.Drop(t.Context(), all[0].Number); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, fleet.ErrWithdrawn) || !strings.Contains(err.Error(), "dropped") {
			t.Errorf("%v", err)
		}
	})
}
