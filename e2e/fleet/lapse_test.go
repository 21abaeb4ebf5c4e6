package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A holder gives connections that keep back the first message with a text in it until it is released.
type holder struct {
	s    *server.Server
	text string
	held chan struct{} // closed when it is kept back

	mu   sync.Mutex
	conn net.Conn
	kept []byte
}

// InProcessConn implements nats.InProcessConnProvider.
func (h *holder) InProcessConn() (net.Conn, error) {
	conn, err := h.s.InProcessConn()
	return &holdConn{conn, h}, err
}

func (h *holder) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.conn.Write(h.kept)
	return err
}

type holdConn struct {
	net.Conn
	h *holder
}

func (c *holdConn) Write(p []byte) (int, error) {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil && bytes.Contains(p, []byte(h.text)) {
		h.conn, h.kept = c.Conn, bytes.Clone(p)
		close(h.held)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A conversation that is being opened when the lease ends is begun again as those that are open: if another node has
// taken it meanwhile, it is not opened.
func TestLeaseEndsWhileAConversationIsOpened(t *testing.T) {
	for _, taken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := startServer(t, &server.Options{})
			c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
			b := c.node()
			j, err := b.Create(t.Context(), "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			// The index is read when the conversation has been begun, and before it is open.
			h := &holder{s: s, text: "$KV.fermata-index.x", held: make(chan struct{})}
			c.options.Connect = []natsgo.Option{natsgo.InProcessServer(h)}
			a := c.node()
			type result struct {
				j   journal.Journal
				err error
			}
			opened := make(chan result, 1)
			go func() {
				j, err := a.Open(t.Context(), "x")
				opened <- result{j, err}
			}()
			<-h.held
			endLease(t, s, a.Node())
			if taken {
				k, err := b.Open(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				defer k.Close()
			}
			time.Sleep(time.Second) // the node notices
			if err := h.release(); err != nil {
				t.Fatal(err)
			}
			r := <-opened
			if taken {
				if !errors.As(r.err, new(*journal.LockedError)) {
					t.Errorf("opened, although another node has it: %v, want locked", r.err)
				}
				return
			}
			if r.err != nil {
				t.Fatal(r.err)
			}
			defer r.j.Close()
			if n := lastMeta(t, s, "x").Epoch; n != 3 {
				t.Errorf("epoch %d, want 3: one each for creating, opening and beginning again", n)
			}
			r.j.Append(entry("a"))
			time.Sleep(time.Second)
			if n, err := r.j.Durable(); n != 1 || err != nil {
				t.Errorf("durable %d, %v", n, err)
			}
		})
	}
}

// lastMeta returns what the last message of a conversation's records says about it.
func lastMeta(t *testing.T, s *server.Server, id string) (m struct {
	Epoch  uint64 `json:"e"`
	Begin  bool   `json:"o"`
	Closed bool   `json:"c"`
},
) {
	t.Helper()
	admin(t, s, func(js jetstream.JetStream) error {
		stream, err := js.Stream(t.Context(), "fermata")
		if err != nil {
			return err
		}
		last, err := stream.GetLastMsgForSubject(t.Context(), "fermata.c."+id+".r")
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(last.Header.Get("Fermata")), &m)
	})
	return m
}

// A conversation that could not be begun again is closed with the beginning of the epoch that it has got: others take
// no epoch without one.
func TestCloseAfterABeginThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		c := newCluster(t, journal.MemoryOptions{}, natsgo.InProcessServer(s))
		a, b := c.node(), c.node()
		j, err := a.Create(t.Context(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		j.Append(entry("a"))
		time.Sleep(time.Second)
		limit(t, s, 1)
		endLease(t, s, a.Node())
		time.Sleep(time.Second) // the node notices
		if _, err := j.Durable(); err == nil {
			t.Fatal("begun again in a stream that is full")
		}
		limit(t, s, -1)
		j.Close() // says again that it had failed
		if m := lastMeta(t, s, "x"); !m.Begin || !m.Closed || m.Epoch != 2 {
			t.Errorf("closed with %+v, want the beginning of epoch 2", m)
		}
		k, err := b.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if last := k.Recovery().Last; last != 1 {
			t.Errorf("%d records afterwards, want 1", last)
		}
	})
}

// limit sets how many bytes the stream may have.
func limit(t *testing.T, s *server.Server, size int64) {
	t.Helper()
	admin(t, s, func(js jetstream.JetStream) error {
		stream, err := js.Stream(t.Context(), "fermata")
		if err != nil {
			return err
		}
		c := stream.CachedInfo().Config
		c.MaxBytes = size
		_, err = js.UpdateStream(t.Context(), c)
		return err
	})
}
