package jsonrpc

import (
	"context"
	"io"
	"sync"
	"time"
)

// A queue writes lines in the order they were put, in a goroutine of its own,
// so that no caller waits for a reader that is slow.
type queue struct {
	most int // bytes, above which wait waits

	mu     sync.Mutex
	lines  []byte        // not yet handed to the writer; guarded by mu
	busy   bool          // the writer writes; guarded by mu
	left   int           // bytes that the writer has not written; guarded by mu
	moved  time.Time     // when it last got rid of something, or began; guarded by mu
	err    error         // why nothing is written any more; guarded by mu
	change chan struct{} // closed when any of these changes; guarded by mu
}

func newQueue(most int) *queue { return &queue{most: most, change: make(chan struct{})} }

// changed wakes everybody. mu is held.
func (q *queue) changed() {
	close(q.change)
	q.change = make(chan struct{})
}

// put adds a line. It never waits; after an error the line is dropped.
func (q *queue) put(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.lines = append(append(q.lines, line...), '\n')
	q.changed()
}

// until waits until cond, which is called with mu held, or for ctx.
func (q *queue) until(ctx context.Context, cond func() bool) error {
	for {
		q.mu.Lock()
		ok, err, change := cond(), q.err, q.change
		q.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// room waits until there is room. It fails when nothing is written any more.
func (q *queue) room(ctx context.Context) error {
	return q.until(ctx, func() bool { return q.err == nil && len(q.lines) < q.most })
}

// flush waits until all is written.
func (q *queue) flush(ctx context.Context) error {
	return q.until(ctx, func() bool { return len(q.lines) == 0 && !q.busy })
}

// size is how many bytes wait.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines) + q.left
}

// stop makes every later line be dropped.
func (q *queue) stop(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err, q.lines = err, nil
		q.changed()
	}
}

// take waits for lines to write.
func (q *queue) take() ([]byte, bool) {
	for {
		q.mu.Lock()
		q.busy = false
		lines, err, change := q.lines, q.err, q.change
		switch {
		case err != nil:
			q.mu.Unlock()
			return nil, false
		case len(lines) > 0:
			q.lines, q.busy, q.left, q.moved = nil, true, len(lines), time.Now()
			q.changed()
			q.mu.Unlock()
			return lines, true
		}
		q.mu.Unlock()
		<-change
	}
}

// piece is how much is written at once: little enough to see that it goes on.
const piece = 64 << 10

// stuck reports whether the client has not read for a while, though there is something to read.
func (q *queue) stuck(since time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy && time.Since(q.moved) >= since
}

// run writes until stop or an error, which it returns. A write that no reader
// takes holds it up beyond stop.
func (q *queue) run(out io.Writer) error {
	for {
		lines, ok := q.take()
		if !ok {
			return nil
		}
		for len(lines) > 0 {
			n := min(len(lines), piece)
			if _, err := out.Write(lines[:n]); err != nil {
				q.stop(err)
				return err
			}
			lines = lines[n:]
			q.mu.Lock()
			q.left, q.moved = len(lines), time.Now()
			q.mu.Unlock()
		}
		q.mu.Lock()
		q.busy = false
		q.changed()
		q.mu.Unlock()
	}
}
