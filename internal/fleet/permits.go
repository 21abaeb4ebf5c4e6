package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Permits share what a machine can run among processes, each of which runs turns of one user: whoever has waited longest gets the next, and has one
// request at a time, so that no user waits for more than one turn of each other.
type Permits struct {
	mu      sync.Mutex
	free    int      // guarded by mu, as what follows
	waiting []*queue // in the order in which they asked
	held    map[*queue]int
}

// A queue is a process that asks.
type queue struct{ grant func() }

// NewPermits returns permits for so many turns at once.
func NewPermits(turns int) *Permits { return &Permits{free: turns, held: map[*queue]int{}} }

// The lines by which a process asks for a permit and returns one, and by which it is given one.
const (
	lineWant = "want"
	lineDone = "done"
	lineGo   = "go"
)

// Serve gives permits to one process until its connection ends. Then what it has is free.
func (ps *Permits) Serve(conn io.ReadWriter) error {
	q := &queue{grant: func() { fmt.Fprintln(conn, lineGo) }} // else it has ended
	defer ps.leave(q)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch lines.Text() {
		case lineWant:
			ps.want(q)
		case lineDone:
			ps.done(q)
		default:
			return fmt.Errorf("unexpected line %q", lines.Text())
		}
	}
	return lines.Err()
}

func (ps *Permits) want(q *queue) {
	ps.mu.Lock()
	ps.waiting = append(ps.waiting, q)
	ps.mu.Unlock()
	ps.give()
}

func (ps *Permits) done(q *queue) {
	ps.mu.Lock()
	if ps.held[q] > 0 {
		ps.held[q]--
		ps.free++
	}
	ps.mu.Unlock()
	ps.give()
}

func (ps *Permits) leave(q *queue) {
	ps.mu.Lock()
	ps.free += ps.held[q]
	delete(ps.held, q)
	kept := ps.waiting[:0]
	for _, w := range ps.waiting {
		if w != q {
			kept = append(kept, w)
		}
	}
	ps.waiting = kept
	ps.mu.Unlock()
	ps.give()
}

// give gives what is free to those who wait.
func (ps *Permits) give() {
	ps.mu.Lock()
	var granted []*queue
	for ps.free > 0 && len(ps.waiting) > 0 {
		q := ps.waiting[0]
		ps.waiting = ps.waiting[1:]
		ps.free--
		ps.held[q]++
		granted = append(granted, q)
	}
	ps.mu.Unlock()
	for _, q := range granted {
		q.grant()
	}
}

// ErrAlone says that the process which gives permits has ended.
var ErrAlone = errors.New("the process that serves this node has ended")

// A Permitted is a process that gets permits over a connection.
type Permitted struct {
	Gone chan struct{} // closed when the connection has ended

	conn  io.ReadWriteCloser
	grant chan struct{} // a permit; room for one: one is asked for at a time
}

// NewPermitted returns the process at the other end of Serve.
func NewPermitted(conn io.ReadWriteCloser) *Permitted {
	p := &Permitted{Gone: make(chan struct{}), conn: conn, grant: make(chan struct{}, 1)}
	go func() { // ends with the connection
		defer close(p.Gone)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			p.grant <- struct{}{}
		}
	}()
	return p
}

// Acquire waits for a permit. It is called by one goroutine.
func (p *Permitted) Acquire(ctx context.Context) (release func(), err error) {
	if _, err := fmt.Fprintln(p.conn, lineWant); err != nil {
		return nil, ErrAlone
	}
	done := sync.OnceFunc(func() { fmt.Fprintln(p.conn, lineDone) }) // else there is nobody to return it to
	select {
	case <-p.grant:
		return done, nil
	case <-p.Gone:
		return nil, ErrAlone
	case <-ctx.Done():
		go func() { // ends with the permit, or the connection
			select {
			case <-p.grant:
				done()
			case <-p.Gone:
			}
		}()
		return nil, context.Cause(ctx)
	}
}
