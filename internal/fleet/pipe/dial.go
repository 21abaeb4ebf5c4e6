package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Dial connects to whoever listens at an address.
func Dial(ctx context.Context, bus Bus, address string, o Options) (*Conn, error) {
	c, err := dial(ctx, bus, address, o)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	go c.keepAlive() // ends with the connection
	return c, nil
}

func dial(ctx context.Context, bus Bus, address string, o Options) (*Conn, error) {
	answers := make(chan Message, 1) // room for the only one
	opening := bus.NewInbox()
	leave, err := bus.Subscribe(opening, func(m Message) {
		select {
		case answers <- m:
		default: // there was one
		}
	})
	if err != nil {
		return nil, err
	}
	defer leave()
	c, err := newConn(bus, "", o)
	if err != nil {
		return nil, err
	}
	hello := frame{kind: kindOpen, number: newestVersion, payload: append(number(oldestVersion), c.inbox...)}
	if err := bus.Publish(address, opening, hello.encode()); err != nil {
		c.fail(err)
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.silence(), ErrSilent)
	defer cancel()
	select {
	case m := <-answers:
		err = c.acceptAnswer(m)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}

// acceptAnswer takes the answer to the first message.
func (c *Conn) acceptAnswer(m Message) error {
	if m.NoListener {
		return ErrGone
	}
	f, err := decode(m.Data)
	switch {
	case err != nil:
		return err
	case f.kind == kindRefuse && f.number != 0:
		return &VersionError{Theirs: int(f.number), Oldest: oldestVersion, Newest: newestVersion}
	case f.kind == kindRefuse:
		return errors.New(string(f.payload))
	case f.kind != kindAccept || m.Reply == "":
		return errFrame
	case f.number < oldestVersion || f.number > newestVersion:
		return &VersionError{Theirs: int(f.number), Oldest: oldestVersion, Newest: newestVersion}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer, c.heard = m.Reply, time.Now()
	return nil
}

// A Listener accepts connections at an address.
type Listener struct {
	bus   Bus
	o     Options
	leave func()
	ready chan *Conn // sent by the subscription; never closed
	conns []*Conn    // that were accepted and may be open; used by the subscription only
	over  chan struct{}
	close sync.Once
}

// maxWaiting is how many connections may wait to be accepted.
const maxWaiting = 64

// Listen listens at an address.
func Listen(bus Bus, address string, o Options) (*Listener, error) {
	l := &Listener{bus: bus, o: o, ready: make(chan *Conn, maxWaiting), over: make(chan struct{})}
	leave, err := bus.Subscribe(address, l.acceptOpen)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	l.leave = leave
	return l, nil
}

// acceptOpen answers a first message.
func (l *Listener) acceptOpen(m Message) {
	f, err := decode(m.Data)
	if err != nil || f.kind != kindOpen || m.Reply == "" || len(f.payload) <= 8 {
		return // not one of ours
	}
	oldest, _ := parseNumber(f.payload[:8]) // it has that length
	version := min(f.number, newestVersion)
	if version < max(oldest, oldestVersion) {
		l.refuse(m, newestVersion, "")
		return
	}
	if !l.hasRoom() {
		l.refuse(m, 0, ErrFull.Error())
		return
	}
	c, err := newConn(l.bus, string(f.payload[8:]), l.o)
	if err != nil {
		l.refuse(m, 0, err.Error())
		return
	}
	c.mu.Lock()
	c.accepted = true // before the other side knows where to send to
	c.mu.Unlock()
	l.conns = append(l.conns, c)
	select {
	case l.ready <- c:
	default:
		c.fail(ErrFull)
		l.refuse(m, 0, ErrFull.Error())
		return
	}
	go c.keepAlive() // ends with the connection
	select {
	case <-l.over: // it is no longer accepted
		c.Close()
		return
	default:
	}
	if err := l.bus.Publish(m.Reply, c.inbox, frame{kind: kindAccept, number: version}.encode()); err != nil {
		c.fail(err)
	}
}

// hasRoom reports whether one more connection can be accepted.
func (l *Listener) hasRoom() bool {
	strangers := 0
	l.conns = slices.DeleteFunc(l.conns, func(c *Conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.isStranger() {
			strangers++
		}
		return c.err != nil
	})
	return strangers < maxStrangers && len(l.conns) < maxConns
}

func (l *Listener) refuse(m Message, version uint64, why string) {
	_ = l.bus.Publish(m.Reply, "", frame{kind: kindRefuse, number: version, payload: []byte(why)}.encode()) // else it waits
}

// Accept returns the next connection, or net.ErrClosed after Close.
func (l *Listener) Accept() (io.ReadWriteCloser, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close ends listening. Connections stay, but for those that were not accepted.
func (l *Listener) Close() error {
	l.close.Do(func() {
		l.leave()
		close(l.over)
		for {
			select {
			case c := <-l.ready:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}
