package fleet

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A bridge lets a synctest bubble use servers outside of it. A goroutine that waited for a real
// connection would keep the bubble's time from passing; one that does not would let it
// pass before the answer comes. So connections are read outside; inside, readers wait in a way that
// the bubble can see, and one goroutine, pace, keeps the bubble busy while an answer is due.
type bridge struct {
	address string

	mu      sync.Mutex
	conns   map[*bridgeConn]struct{}
	due     map[string]int64 // answers, by where they are sent to, and since when
	traffic int64            // when something was last sent or received

	poke chan struct{} // room for one: something was sent
	stop chan struct{}
	done chan struct{}
}

// How long nothing has to be sent before the bubble's time passes; how long an answer is
// waited for, because one that never comes must not stop the bubble's time; and how often,
// of the bubble's time, is looked for what nobody asked for.
const (
	silence   = 2 * time.Millisecond
	answerDue = 5 * time.Second
	pollEvery = 20 * time.Millisecond
)

// realNow is the time outside: in a bubble, time.Now is the bubble's.
func realNow() int64 {
	var tv syscall.Timeval
	_ = syscall.Gettimeofday(&tv)
	return tv.Nano()
}

// realPause blocks for a moment of the time outside.
func realPause() {
	ts := syscall.NsecToTimespec(int64(silence / 8))
	_ = syscall.Nanosleep(&ts, nil)
}

// outside runs functions outside of any bubble.
var outside = func() chan<- func() {
	work := make(chan func())
	go func() { // until the tests end
		for f := range work {
			go f()
		}
	}()
	return work
}()

// newBridge is called in the bubble.
func newBridge(t testing.TB, address string) *bridge {
	b := &bridge{
		address: address, conns: make(map[*bridgeConn]struct{}), due: make(map[string]int64),
		poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go b.pace() // ended below
	t.Cleanup(func() {
		close(b.stop)
		<-b.done
	})
	return b
}

// pace wakes readers when there is something to read, and keeps the bubble from being idle
// while something is on its way.
func (b *bridge) pace() {
	defer close(b.done)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		for b.busy() {
			realPause()
			b.deliver()
		}
		select {
		case <-b.poke:
		case <-tick.C:
			b.deliver()
		case <-b.stop:
			return
		}
	}
}

func (b *bridge) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := realNow()
	for key, since := range b.due {
		if now-since > int64(answerDue) {
			delete(b.due, key)
		}
	}
	return len(b.due) > 0 || now-b.traffic < int64(silence)
}

// deliver wakes the readers that have something to read.
func (b *bridge) deliver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		if len(c.received) > 0 || c.err != nil {
			c.notify()
		}
	}
}

// Dial implements nats.CustomDialer.
func (b *bridge) Dial(network, _ string) (net.Conn, error) {
	conn, err := net.Dial(network, b.address)
	if err != nil {
		return nil, err
	}
	c := &bridgeConn{Conn: conn, bridge: b, wake: make(chan struct{})}
	b.mu.Lock()
	b.conns[c] = struct{}{}
	b.due[c.name("INFO")] = realNow()
	b.mu.Unlock()
	b.sent()
	outside <- c.receive
	return c, nil
}

func (b *bridge) sent() {
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// A bridgeConn is a connection to a server, used within a bubble.
type bridgeConn struct {
	net.Conn
	bridge *bridge

	// Guarded by the bridge's mu.
	received []byte
	err      error
	deadline time.Time
	wake     chan struct{} // of the bubble; closed when there is something to read
	out, in  []byte        // parts of messages not yet looked at
}

func (c *bridgeConn) notify() {
	close(c.wake)
	c.wake = make(chan struct{})
}

// name is what an answer to this connection is known by.
func (c *bridgeConn) name(what string) string { return what + " " + c.LocalAddr().String() }

// receive reads, outside of the bubble, until the connection ends.
func (c *bridgeConn) receive() {
	b, buf := c.bridge, make([]byte, 64<<10)
	for {
		n, err := c.Conn.Read(buf)
		b.mu.Lock()
		c.received = append(c.received, buf[:n]...)
		b.traffic = realNow()
		c.in = lookAt(append(c.in, buf[:n]...), c.answered)
		if err != nil {
			c.err = err
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// answered notes, with the bridge's mutex, what came from the server.
func (c *bridgeConn) answered(verb string, args []string, payload []byte) {
	due := c.bridge.due
	switch verb {
	case "INFO", "PONG":
		delete(due, c.name(verb))
	case "MSG", "HMSG":
		if strings.HasPrefix(args[2], "$JS.ACK.") {
			delete(due, c.name("NEXT"))
		}
		if _, batch := due["batch "+args[0]]; batch && !bytes.HasPrefix(payload, []byte("NATS/1.0\r\n")) {
			delete(due, "batch "+args[0]) // its last message has a status
		}
		delete(due, args[0])
	}
}

// asked notes, with the bridge's mutex, what is sent to the server.
func (c *bridgeConn) asked(verb string, args []string, payload []byte) {
	due := c.bridge.due
	switch {
	case verb == "PING":
		due[c.name("PONG")] = realNow()
	case !strings.HasSuffix(verb, "PUB") || len(args) < 3 || verb == "HPUB" && len(args) < 4:
	case strings.Contains(args[0], ".CONSUMER.MSG.NEXT."):
		due[c.name("NEXT")] = realNow()
	case strings.Contains(args[0], ".DIRECT.GET.") && bytes.Contains(payload, []byte(`"batch"`)):
		due["batch "+args[1]] = realNow()
	default:
		due[args[1]] = realNow()
	}
}

// lookAt calls f with the messages of a stream of NATS's protocol, and returns what is not whole.
func lookAt(stream []byte, f func(verb string, args []string, payload []byte)) []byte {
	for {
		line, rest, ok := bytes.Cut(stream, []byte("\r\n"))
		if !ok {
			return stream
		}
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			stream = rest
			continue
		}
		verb, args, payload := strings.ToUpper(fields[0]), fields[1:], []byte(nil)
		if strings.HasSuffix(verb, "PUB") || strings.HasSuffix(verb, "MSG") {
			n, _ := strconv.Atoi(args[len(args)-1])
			if len(rest) < n+2 {
				return stream
			}
			payload, rest = rest[:n], rest[n+2:]
		}
		f(verb, args, payload)
		stream = rest
	}
}

// Read implements net.Conn.
func (c *bridgeConn) Read(p []byte) (int, error) {
	b := c.bridge
	for {
		b.mu.Lock()
		n := copy(p, c.received)
		c.received = c.received[n:]
		wake, err, deadline := c.wake, c.err, c.deadline
		b.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		var over <-chan time.Time
		if !deadline.IsZero() {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			over = timer.C
		}
		select {
		case <-wake:
		case <-over:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// Write implements net.Conn.
func (c *bridgeConn) Write(p []byte) (int, error) {
	b := c.bridge
	b.mu.Lock()
	c.out = lookAt(append(c.out, p...), c.asked)
	b.traffic = realNow()
	b.mu.Unlock()
	n, err := c.Conn.Write(p)
	b.sent()
	return n, err
}

// Close implements net.Conn.
func (c *bridgeConn) Close() error {
	b := c.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, open := b.conns[c]; open {
		delete(b.conns, c)
		if c.err == nil {
			c.err = net.ErrClosed
		}
		c.notify()
	}
	return c.Conn.Close()
}

// SetDeadline implements net.Conn. Deadlines are of the bubble's time; a write needs none.
func (c *bridgeConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *bridgeConn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *bridgeConn) SetReadDeadline(t time.Time) error {
	b := c.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	c.deadline = t
	c.notify()
	return nil
}
