package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/fleet/pipe"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A member is a process on a machine of its own, whose conversations others join over NATS.
type member struct {
	*enginetest.Engine
	c     *remote.Router
	store *nats.Store
}

func newMember(t *testing.T, o nats.Options) *member {
	t.Helper()
	host := remote.NewHost(t.Context(), "", "test", func(err error) { t.Error(err) })
	o.Join = true
	if o.Lease == 0 {
		o.Lease = shortLease
	}
	o.Accept = func(nc *natsgo.Conn, subject string, _ time.Duration) error {
		l, err := pipe.Listen(pipe.OverNATS(nc), subject, pipe.Options{})
		if err == nil {
			host.Accept(l)
		}
		return err
	}
	m := &member{store: nats.New(t.Context(), o)}
	m.Engine = enginetest.New(t, enginetest.Options{Store: m.store, IdleAfter: -1, IdleFollowed: -1})
	m.c = remote.NewRouter(m.Engine.Local, host, remote.Options{Client: "test", Reach: m.reach})
	t.Cleanup(func() {
		_ = m.c.Shutdown(context.WithoutCancel(t.Context())) // it may have died
		m.store.Close()
	})
	return m
}

func (m *member) reach(ctx context.Context, node string) (io.ReadWriteCloser, error) {
	link, err := m.store.Link(ctx)
	if err != nil {
		return nil, err
	}
	return pipe.Dial(ctx, pipe.OverNATS(link.Conn), node, pipe.Options{})
}

// die ends a member as kill -9 does: first, nobody hears of it any more.
func (m *member) die(t *testing.T) {
	if link, err := m.store.Link(t.Context()); err == nil {
		link.Conn.Close()
	}
	m.store.Abandon()
	m.Engine.Kill()
}

// A reader follows a conversation.
type reader struct {
	t      *testing.T
	events chan p.Event
	ended  chan error
	text   strings.Builder // of the model's messages while they stream
}

func follow(t *testing.T, e engine.Engine, id p.ConversationID) *reader {
	r := &reader{t: t, events: make(chan p.Event, 10000), ended: make(chan error, 1)}
	go func() { // ends with the test
		for ev, err := range e.Subscribe(t.Context(), id, 0) {
			if err != nil {
				r.ended <- err
				return
			}
			r.events <- ev
		}
	}()
	return r
}

// until reads up to an event whose line begins with a text.
func (r *reader) until(line string) (lines []string) {
	r.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case ev := <-r.events:
			lines = append(lines, enginetest.Line(ev))
			if d, ok := ev.Body.(*p.Delta); ok {
				if int64(r.text.Len()) != d.Offset {
					r.t.Fatalf("text at %d after %d bytes", d.Offset, r.text.Len())
				}
				r.text.WriteString(d.Text)
			}
			if strings.HasPrefix(enginetest.Line(ev), line) {
				return lines
			}
		case err := <-r.ended:
			r.t.Fatalf("the follower ended with %v after %q", err, lines)
		case <-timeout:
			r.t.Fatalf("no %q in %q", line, lines)
		}
	}
}

func say(t *testing.T, e engine.Engine, id p.ConversationID, text string) {
	t.Helper()
	if _, err := e.Submit(t.Context(), id, p.UserTurn{Content: p.Text(text)}); err != nil {
		t.Fatal(err)
	}
}

// A client on another machine takes part in everything: messages, interrupts and approvals go to the
// owner, and all see the same.
func TestClientOnAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		a, b := newMember(t, o), newMember(t, o)
		id := a.Begin()
		seenA, seenB := follow(t, a.c, id), follow(t, b.c, id)
		say(t, b.c, id, "from b") // a runs it
		a.Request().Answer("hello")
		seenA.until("turn_ended completed")
		seenB.until("turn_ended completed")

		say(t, a.c, id, "from a")
		q := a.Request()
		q.Call("c", "work", "{}")
		q.End()
		a.Run().Ask("rm", "-r")
		seenB.until("approval_requested")
		snap, err := b.c.Resume(t.Context(), id)
		if err != nil || len(snap.PendingApprovals) != 1 {
			t.Fatalf("%+v, %v", snap, err)
		}
		if _, err := b.c.Submit(t.Context(), id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved}); err != nil {
			t.Fatal(err)
		}
		a.Run()
		if _, err := b.c.Submit(t.Context(), id, p.Interrupt{}); err != nil {
			t.Fatal(err)
		}
		seenA.until("turn_ended interrupted")
		seenB.until("turn_ended interrupted")
		if _, err := b.c.Submit(t.Context(), id, p.Interrupt{}); !errors.Is(err, engine.ErrNothingToStop) {
			t.Errorf("error %v", err)
		}
	})
}

// When the owner dies in mid-sentence, its clients on other machines see the turn end less than 2 s later, one of them
// owns it now, and the other uses that.
func TestOwnerOnAnotherMachineDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		worst := time.Duration(0)
		for i := range 10 {
			a, b, c := newMember(t, o), newMember(t, o), newMember(t, o)
			id := a.Begin()
			seenB, seenC := follow(t, b.c, id), follow(t, c.c, id)
			say(t, c.c, id, "go")
			a.Request().Delta("half a sen")
			seenB.until("delta 1.1.0 0 half a sen")
			seenC.until("delta 1.1.0 0 half a sen")
			time.Sleep(time.Duration(i) * 37 * time.Millisecond)
			a.die(t)
			died := time.Now()
			seenB.until("turn_ended crashed")
			seenC.until("turn_ended crashed")
			worst = max(worst, time.Since(died))
			owner := b
			if _, open, _ := b.store.Owner(t.Context(), string(id)); open && b.c.Joined(id) != 0 {
				owner = c
			}
			for _, m := range []*member{b, c} {
				say(t, m.c, id, "and now?")
				owner.Request().Answer("here")
				seenB.until("turn_ended completed")
				seenC.until("turn_ended completed")
			}
		}
		t.Logf("worst: %v", worst)
		if worst >= 2*time.Second {
			t.Errorf("after the owner's death the turn ended %v later", worst)
		}
	})
}

// Clients wait for as long as the lease of a dead owner lasts.
func TestOwnerWithALongLeaseDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Lease: 30 * time.Second, Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		a, b, c := newMember(t, o), newMember(t, o), newMember(t, o)
		id := a.Begin()
		seen := follow(t, b.c, id)
		say(t, b.c, id, "go")
		a.Request().Delta("half a sen")
		seen.until("delta")
		a.die(t)
		if _, err := c.c.Resume(t.Context(), id); err != nil {
			t.Errorf("resume: %v", err)
		}
		seen.until("turn_ended crashed")
	})
}

// Followers of an owner that was taken for dead move on to the new one, also if the old one is well again and
// has nothing to write.
func TestFollowersLeaveAnOwnerThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		o := nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}}
		a, b, c := newMember(t, o), newMember(t, o), newMember(t, o)
		id := a.Begin()
		seen := follow(t, b.c, id)
		say(t, b.c, id, "one")
		a.Request().Answer("hello")
		seen.until("turn_ended completed")
		endLease(t, s, a.store.Node())
		say(t, c.c, id, "two")
		c.Request().Answer("from c")
		seen.until("turn_ended completed")
		say(t, b.c, id, "three")
		c.Request().Answer("from c again")
		seen.until("turn_ended completed")
	})
}

// The commands for what other processes run work from another machine.
func TestCommandsFromAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	cmd, out, mark := a.startTurn()
	ps := b.must("ps")
	host, _ := os.Hostname()
	if !strings.Contains(ps, fmt.Sprintf("%d on %s", cmd.Process.Pid, host)) || !strings.Contains(ps, "running") {
		t.Errorf("ps: %s", ps)
	}
	id := strings.Fields(strings.Split(ps, "\n")[1])[0]
	if out := b.must("send", id, "talk", "3"); !strings.Contains(out, "steered into turn 1") {
		t.Errorf("send: %s", out)
	}
	if out := b.must("interrupt", id); !strings.Contains(out, "turn 1 interrupted") {
		t.Errorf("interrupt: %s", out)
	}
	_ = cmd.Wait()
	if running(mark) != 0 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("after the interrupt %d commands run; it said: %s", running(mark), out)
	}
}

// What a client on one machine has read of a sentence is a prefix of what is there after the process on
// another machine that ran the turn was killed.
func TestSeenIsAPrefixAfterAKill(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	m := newMachine(t, s.ClientURL())
	cmd, _ := m.start(append(turn, "talk 2000")...)
	client := newMember(t, nats.Options{URL: s.ClientURL(), Lease: time.Minute}) // whoever comes first makes the stream
	var id p.ConversationID
	eventually(t, "the turn is there", func() bool {
		page, err := client.c.List(t.Context(), engine.ListOptions{})
		if err != nil || len(page.Items) == 0 || page.Items[0].Turns == 0 {
			return false
		}
		id = page.Items[0].ID
		return true
	})
	seen := follow(t, client.c, id)
	for range 20 {
		seen.until("delta")
	}
	if client.c.Joined(id) != cmd.Process.Pid {
		t.Errorf("joined process %d, want %d", client.c.Joined(id), cmd.Process.Pid)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	endLeaseOf(t, s.ClientURL(), "fermata", cmd.Process.Pid)
	seen.until("turn_ended crashed")
	whole := ""
	for ev, err := range client.c.Read(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(*p.AssistantMessage); ok {
			whole += b.Text
		}
	}
	if read := seen.text.String(); read == "" || !strings.HasPrefix(whole, read) {
		t.Errorf("read %q, there is %q", read, whole)
	}
	if out := m.must("fsck"); !strings.Contains(out, " ok") {
		t.Errorf("fsck: %s", out)
	}
}
