package pipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeBus delivers messages as NATS does: in order, and each in a goroutine of its subscription.
type fakeBus struct {
	mu    sync.Mutex
	next  int
	subs  map[string]chan Message
	lose  func(data []byte) bool // whether a message gets lost; nil is never
	stuck map[string]bool        // subjects whose messages are kept from their readers
}

func newBus() *fakeBus { return &fakeBus{subs: map[string]chan Message{}, stuck: map[string]bool{}} }

func (b *fakeBus) Publish(subject, reply string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lose != nil && b.lose(data) || b.stuck[subject] {
		return nil
	}
	if ch := b.subs[subject]; ch != nil {
		ch <- Message{Reply: reply, Data: bytes.Clone(data)}
	} else if ch := b.subs[reply]; ch != nil {
		ch <- Message{NoListener: true}
	}
	return nil
}

func (b *fakeBus) Subscribe(subject string, f func(Message)) (func(), error) {
	ch := make(chan Message, 10000)
	b.mu.Lock()
	b.subs[subject] = ch
	b.mu.Unlock()
	go func() { // ends with the subscription
		for m := range ch {
			f(m)
		}
	}()
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, subject)
		close(ch)
	}), nil
}

func (b *fakeBus) NewInbox() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	return fmt.Sprint("inbox", b.next)
}

func (b *fakeBus) MaxPayload() int { return 100 << 10 }

// connect returns both sides of a connection.
func connect(t *testing.T, bus *fakeBus) (client, server *Conn) {
	t.Helper()
	l, err := Listen(bus, "node", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	client, err = Dial(t.Context(), bus, "node", Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = conn.(*Conn)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestBytesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, newBus())
		r := rand.New(rand.NewPCG(1, 2))
		sent := make([]byte, 5<<20) // more than the window
		for i := range sent {
			sent[i] = byte(r.Uint32())
		}
		go func() {
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(500<<10))
				if _, err := server.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			server.Close()
		}()
		got, err := io.ReadAll(client)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
		}
	})
}

// A reader that does not read holds its writer up; it costs no more than the window.
func TestUnreadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, newBus())
		wrote := make(chan error, 1)
		go func() { _, err := server.Write(make([]byte, 3*window)); wrote <- err }()
		time.Sleep(time.Minute)
		client.mu.Lock()
		unread := len(client.unread)
		client.mu.Unlock()
		if unread != window {
			t.Errorf("%d bytes wait", unread)
		}
		if _, err := io.CopyN(io.Discard, client, 3*window); err != nil {
			t.Error(err)
		}
		if err := <-wrote; err != nil {
			t.Error(err)
		}
	})
}

func TestLossIsNoticed(t *testing.T) {
	for _, kind := range []byte{kindData, kindEnd} {
		synctest.Test(t, func(t *testing.T) {
			bus := newBus()
			client, server := connect(t, bus)
			if _, err := server.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			bus.mu.Lock()
			bus.lose = func(b []byte) bool { return b[0] == kind }
			bus.mu.Unlock()
			_, _ = server.Write([]byte("lost"))
			if kind == kindEnd {
				server.Close()
			}
			got, err := io.ReadAll(client)
			if kind == kindData && (!errors.Is(err, ErrGap) || len(got) > 0) || kind == kindEnd && !errors.Is(err, ErrGone) {
				t.Errorf("%q, %v", got, err)
			}
			client.Close()
		})
	}
}

// One that dies is noticed at once, one that is halted after the silence; one that has nothing to say is neither.
func TestDeathIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(*fakeBus, *Conn)
		want   error
		within time.Duration
	}{
		"dead":   {func(_ *fakeBus, c *Conn) { c.fail(errors.New("died")) }, ErrGone, 300 * time.Millisecond},
		"halted": {func(b *fakeBus, c *Conn) { b.mu.Lock(); b.stuck["inbox2"] = true; b.mu.Unlock() }, ErrSilent, 1600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := newBus()
				client, server := connect(t, bus)
				time.Sleep(time.Hour)
				if client.err != nil || server.err != nil {
					t.Fatalf("an idle connection ended: %v, %v", client.err, server.err)
				}
				began := time.Now()
				test.do(bus, server)
				_, err := client.Read(make([]byte, 1))
				if took := time.Since(began); !errors.Is(err, test.want) || took > test.within {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

func TestWhoIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newBus()
		if _, err := Dial(t.Context(), bus, "node", Options{}); !errors.Is(err, ErrGone) {
			t.Errorf("no client listens: %v", err)
		}
		_, _ = bus.Subscribe("mute", func(Message) {})
		if _, err := Dial(t.Context(), bus, "mute", Options{}); !errors.Is(err, ErrSilent) {
			t.Errorf("somebody is mute: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Dial(ctx, bus, "mute", Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		l, err := Listen(bus, "node", Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		bus.subs["mute"] <- Message{}
		close(bus.subs["mute"])
	})
}

func TestVersionsAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newBus()
		l, err := Listen(bus, "node", Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		answers := make(chan Message, 1)
		leave, _ := bus.Subscribe("me", func(m Message) { answers <- m })
		defer leave()
		hello := frame{kind: kindOpen, number: newestVersion + 5, payload: append(number(newestVersion+1), "me"...)}
		if err := bus.Publish("node", "me", hello.encode()); err != nil {
			t.Fatal(err)
		}
		c := &Conn{}
		if err := c.acceptAnswer(<-answers); !errors.As(err, new(*VersionError)) {
			t.Errorf("error %v", err)
		}
	})
}

// Whatever the other side sends, a connection fails at most.
func FuzzTake(f *testing.F) {
	f.Add(frame{kind: kindData, number: 1, payload: []byte("x")}.encode())
	f.Add(frame{kind: kindPing, payload: number(7)}.encode())
	f.Add([]byte("p"))
	f.Fuzz(func(t *testing.T, b []byte) {
		bus := newBus()
		c, err := newConn(bus, "nobody", Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.receive(Message{Data: b})
		c.receive(Message{Data: b})
		if c.taken > c.written && c.err == nil || len(c.unread) > window {
			t.Errorf("%d bytes were read of %d, %d wait, and it lives", c.taken, c.written, len(c.unread))
		}
		c.Close()
	})
}

// One who sends more than it may ends the connection.
func TestSenderExceedsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, newBus())
		for n := range uint64(window/maxChunk + 1) {
			server.send(frame{kind: kindData, number: n + 1, payload: make([]byte, maxChunk)})
		}
		synctest.Wait()
		client.mu.Lock()
		defer client.mu.Unlock()
		if !errors.Is(client.err, errWindow) || len(client.unread) > window {
			t.Errorf("%d bytes wait, error %v", len(client.unread), client.err)
		}
	})
}
