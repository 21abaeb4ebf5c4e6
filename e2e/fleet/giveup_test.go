package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A burst of text that is larger than what the servers take in one message goes in pieces, as records do.
func TestTextLargerThanMaxPayload(t *testing.T) {
	for _, payload := range []int32{8 << 10, 16 << 10, 64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(payload), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, &server.Options{MaxPayload: payload})
				a := nats.New(t.Context(), nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
				defer a.Close()
				j, err := a.Create(t.Context(), "c1", time.Now())
				if err != nil {
					t.Fatal(err)
				}
				defer j.Close()
				text := strings.Repeat("xyzß€𝄐", 20<<10) // runes of one to four bytes, and never at the same place
				j.Open("1.1.0").Write("1.1.0", "stdout", text)
				time.Sleep(time.Second)
				v, err := a.View(t.Context(), "c1")
				if err != nil {
					t.Fatal(err)
				}
				defer v.Close()
				open, err := v.OpenItems(t.Context())
				if err != nil || len(open) != 1 || open[0].Text != text {
					t.Errorf("%d items, %v", len(open), err)
				}
				j.Append(entry("b"))
				if err := settled(j, 1); err != nil {
					t.Errorf("the conversation failed: %v", err)
				}
			})
		})
	}
}

// slowAcks hold back what the server says after it has received a message with a mark.
type slowAcks struct {
	s    *server.Server
	mark []byte

	mu   sync.Mutex
	held chan struct{} // not nil: answers wait until it is closed
	sent chan struct{} // closed when a message with the mark was sent; nil until it is looked for
}

// watch looks for the mark from now on.
func (a *slowAcks) watch() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = make(chan struct{})
	return a.sent
}

// release lets answers through again.
func (a *slowAcks) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.held)
	a.sent = nil
}

// InProcessConn implements nats.InProcessConnProvider.
func (a *slowAcks) InProcessConn() (net.Conn, error) {
	c, err := a.s.InProcessConn()
	return &slowConn{c, a}, err
}

type slowConn struct {
	net.Conn
	acks *slowAcks
}

func (c *slowConn) Write(b []byte) (int, error) {
	c.acks.mu.Lock()
	if c.acks.held == nil && c.acks.sent != nil && bytes.Contains(b, c.acks.mark) {
		c.acks.held = make(chan struct{})
		close(c.acks.sent)
	}
	c.acks.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.acks.mu.Lock()
	held := c.acks.held
	c.acks.mu.Unlock()
	if held != nil {
		<-held
	}
	return n, err
}

// giveUp calls f, whose caller leaves when the message that begins a conversation is under way.
func (a *slowAcks) giveUp(t *testing.T, f func(context.Context) error) {
	t.Helper()
	sent := a.watch()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- f(ctx) }() // ends when it is given up
	<-sent
	synctest.Wait()
	cancel()
	if err := <-left; err == nil {
		t.Error("what was given up was done")
	}
	a.release()
}

// An Open whose caller leaves while the message that takes the conversation is under way leaves no owner that has it not open.
func TestCancelledOpenLeavesNoOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		one := nats.New(t.Context(), nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		defer one.Close()
		j, err := one.Create(t.Context(), "c1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		j.Append(entry("a"))
		j.Close()
		acks := &slowAcks{s: s, mark: []byte(`"o":true`)}
		two := nats.New(t.Context(), nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(acks)}})
		defer two.Close()
		w, err := two.Create(t.Context(), "other", time.Now()) // it is alive
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		acks.giveUp(t, func(ctx context.Context) error { _, err := two.Open(ctx, "c1"); return err })
		k, err := one.Open(t.Context(), "c1")
		if err != nil {
			t.Fatalf("no process has it open, and it cannot be opened: %v", err)
		}
		if n, err := k.Durable(); n != 1 || err != nil {
			t.Errorf("it has %d records: %v", n, err)
		}
		k.Close()
	})
}

// A Create whose caller leaves while it is under way leaves nothing behind.
func TestCancelledCreateLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		acks := &slowAcks{s: s, mark: []byte(`"o":true`)}
		store := nats.New(t.Context(), nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(acks)}})
		defer store.Close()
		e := enginetest.Open(t, store, engine.Config{})
		first, err := e.Create(t.Context(), p.Settings{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		acks.giveUp(t, func(ctx context.Context) error { _, err := e.Create(ctx, p.Settings{Cwd: "/w"}); return err })
		time.Sleep(10 * time.Second)
		l, err := store.List(t.Context())
		if err != nil || len(l) != 1 || l[0].ID != string(first) {
			t.Errorf("%d conversations are listed, want only %s: %v %v", len(l), first, l, err)
		}
		if err := e.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
