package pipe

import (
	"io"
	"net"
	"sync"
	"time"
)

// A Conn is one side of a connection. Its methods may be called from any goroutine.
type Conn struct {
	bus   Bus
	inbox string // where messages for us come
	o     Options

	leave   func()        // ends the subscription
	over    chan struct{} // closed when the connection has ended
	writing sync.Mutex    // held during Write: one at a time
	sending sync.Mutex    // held while a message is numbered and sent

	mu       sync.Mutex
	changed  sync.Cond // of what follows, which mu guards
	peer     string    // where messages are sent to; empty until the other side has accepted
	unread   []byte
	accepted bool   // the other side has opened the connection
	got      int    // bytes, before anything was sent to a peer that was accepted
	received uint64 // messages of data
	read     uint64 // bytes
	reported uint64 // of them the other side knows
	sent     uint64 // messages of data
	written  uint64 // bytes
	taken    uint64 // of them the other side has read
	heard    time.Time
	ended    bool  // the other side sends nothing more
	err      error // why the connection has ended
}

// newConn begins to listen at a new inbox.
func newConn(bus Bus, peer string, o Options) (*Conn, error) {
	c := &Conn{bus: bus, inbox: bus.NewInbox(), o: o, peer: peer, over: make(chan struct{}), heard: time.Now()}
	c.changed.L = &c.mu
	leave, err := bus.Subscribe(c.inbox, c.receive)
	if err != nil {
		return nil, err
	}
	c.leave = leave
	return c, nil
}

// keepAlive says that we are there and notices when the other side is not. It ends with the connection.
func (c *Conn) keepAlive() {
	tick := time.NewTicker(c.o.silence() / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.over:
			return
		}
		c.mu.Lock()
		silent := time.Since(c.heard) > c.o.silence()
		c.mu.Unlock()
		if silent {
			c.fail(ErrSilent)
			return
		}
		c.ping()
	}
}

func (c *Conn) ping() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	f := frame{kind: kindPing, number: c.sent, payload: number(c.read)}
	c.reported = c.read
	c.mu.Unlock()
	c.send(f)
}

// send sends a message. If that fails, so does the connection.
func (c *Conn) send(f frame) {
	if err := c.bus.Publish(c.peer, c.inbox, f.encode()); err != nil {
		c.fail(err)
	}
}

// fail ends the connection.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	if first {
		close(c.over)
		c.leave()
	}
}

// receive takes a message from the other side.
func (c *Conn) receive(m Message) {
	if m.NoListener {
		c.fail(ErrGone)
		return
	}
	f, err := decode(m.Data)
	if err == nil {
		err = c.take(f)
	}
	if err != nil {
		c.fail(err)
	}
}

func (c *Conn) take(f frame) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	c.heard = time.Now()
	switch f.kind {
	case kindData:
		c.received++
		if f.number != c.received {
			return ErrGap
		}
		if c.isStranger() {
			c.got += len(f.payload)
		}
		if len(c.unread)+len(f.payload) > window || c.got > maxGreeting {
			return errWindow
		}
		c.unread = append(c.unread, f.payload...)
	case kindCredit:
		c.taken = max(c.taken, f.number)
	case kindPing:
		if f.number != c.received {
			return ErrGap
		}
		read, err := parseNumber(f.payload)
		if err != nil {
			return err
		}
		c.taken = max(c.taken, read)
	case kindEnd:
		if f.number != c.received {
			return ErrGap
		}
		c.ended = true
	default:
		return errFrame
	}
	if c.taken > c.written {
		return errFrame
	}
	return nil
}

// isStranger reports, with mu, whether the other side has opened the connection and was not answered yet.
func (c *Conn) isStranger() bool { return c.accepted && c.sent == 0 && c.err == nil }

// Read implements io.Reader.
func (c *Conn) Read(b []byte) (int, error) {
	n, report, err := c.next(b)
	if report > 0 {
		c.sending.Lock()
		c.send(frame{kind: kindCredit, number: report})
		c.sending.Unlock()
	}
	return n, err
}

// next waits for something to read. It returns how much the other side should know to be read, 0 if that can wait.
func (c *Conn) next(b []byte) (n int, report uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unread) == 0 && !c.ended && c.err == nil && len(b) > 0 {
		c.changed.Wait()
	}
	n = copy(b, c.unread)
	c.unread = c.unread[n:]
	c.read += uint64(n)
	if c.read-c.reported >= window/4 && c.err == nil {
		c.reported, report = c.read, c.read
	}
	switch {
	case n > 0 || len(b) == 0:
		return n, report, nil
	case c.ended:
		return 0, report, io.EOF
	}
	return 0, report, c.err
}

// Write implements io.Writer. It waits while the other side does not read.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n := 0
	for n < len(b) {
		m, err := c.room(len(b) - n)
		if err != nil {
			return n, err
		}
		c.sending.Lock()
		c.mu.Lock()
		c.sent++
		c.written += uint64(m)
		f := frame{kind: kindData, number: c.sent, payload: b[n : n+m]}
		c.mu.Unlock()
		c.send(f)
		c.sending.Unlock()
		n += m
	}
	return n, nil
}

// room waits until something can be sent, and returns how much.
func (c *Conn) room(want int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.written-c.taken >= window && c.err == nil && !c.ended {
		c.changed.Wait()
	}
	switch {
	case c.err != nil:
		return 0, c.err
	case c.ended:
		return 0, io.ErrClosedPipe
	}
	return min(want, maxChunk, max(c.bus.MaxPayload()-headLength, 1), int(window-(c.written-c.taken))), nil
}

// Close ends the connection. What was written is sent.
func (c *Conn) Close() error {
	c.sending.Lock()
	c.mu.Lock()
	f := frame{kind: kindEnd, number: c.sent}
	open := c.err == nil && c.peer != ""
	c.mu.Unlock()
	if open {
		_ = c.bus.Publish(c.peer, "", f.encode()) // else the other side finds us silent
	}
	c.sending.Unlock()
	c.fail(net.ErrClosed)
	return nil
}
