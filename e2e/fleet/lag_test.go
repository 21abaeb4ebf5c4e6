package fleet

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A lagging network delivers what a server says after a delay. What is said to the server arrives at once.
type lagging struct {
	s     *server.Server
	delay atomic.Int64 // as a time.Duration
	until atomic.Int64 // nothing is delivered before that time, in nanoseconds
}

// slow delivers everything from now on after a delay.
func (l *lagging) slow(d time.Duration) { l.delay.Store(int64(d)) }

// stall delivers nothing for a while, then everything at once.
func (l *lagging) stall(d time.Duration) { l.until.Store(time.Now().Add(d).UnixNano()) }

// due returns when something that has just been received is delivered.
func (l *lagging) due() time.Time {
	at := time.Now().Add(time.Duration(l.delay.Load()))
	if until := time.Unix(0, l.until.Load()); until.After(at) {
		return until
	}
	return at
}

// InProcessConn implements nats.InProcessConnProvider.
func (l *lagging) InProcessConn() (net.Conn, error) {
	conn, err := l.s.InProcessConn()
	if err != nil {
		return nil, err
	}
	c := &lagConn{Conn: conn, wake: make(chan struct{})}
	go c.receive(l) // ends with the connection
	return c, nil
}

// A lagConn holds back what it has received.
type lagConn struct {
	net.Conn

	mu       sync.Mutex
	held     []lagPart
	err      error
	deadline time.Time
	wake     chan struct{} // closed when something above has changed
}

type lagPart struct {
	due  time.Time
	data []byte
}

func (c *lagConn) receive(l *lagging) {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Conn.Read(buf)
		c.mu.Lock()
		if n > 0 {
			c.held = append(c.held, lagPart{l.due(), append([]byte(nil), buf[:n]...)})
		}
		c.err = err
		c.notify()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *lagConn) notify() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// Read implements net.Conn.
func (c *lagConn) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		now, next := time.Now(), time.Time{}
		if len(c.held) > 0 {
			first := &c.held[0]
			if next = first.due; !next.After(now) {
				n := copy(p, first.data)
				if first.data = first.data[n:]; len(first.data) == 0 {
					c.held = c.held[1:]
				}
				c.mu.Unlock()
				return n, nil
			}
		}
		err, deadline, wake := c.err, c.deadline, c.wake
		c.mu.Unlock()
		switch {
		case err != nil && next.IsZero():
			return 0, err
		case !deadline.IsZero() && !deadline.After(now):
			return 0, os.ErrDeadlineExceeded
		case next.IsZero() || !deadline.IsZero() && deadline.Before(next):
			next = deadline
		}
		c.await(wake, next)
	}
}

// await returns when something has changed, or at a time if that is not zero.
func (c *lagConn) await(wake <-chan struct{}, at time.Time) {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-wake:
	case <-due:
	}
}

// SetReadDeadline implements net.Conn.
func (c *lagConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	c.notify()
	return nil
}

// SetDeadline implements net.Conn.
func (c *lagConn) SetDeadline(t time.Time) error {
	_ = c.Conn.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}
