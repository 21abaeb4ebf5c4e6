// Package jsonrpc speaks JSON-RPC 2.0 over a stream, one message per line, both
// sides asking and answering.
//
// What it promises: every request is answered once, unless the peer cancels it, which
// cancels its handler's context and (without [Options.AnswerCancelled]) takes its answer away. Nothing on the wire ends the
// connection but its end: what is not JSON, not UTF-8, too long or unfinished is answered
// and gone past. Each handler has a goroutine of its own and no request waits for an earlier one,
// except those that a [Method] puts into one lane. A handler that panics is answered with an error, and nothing else ends. A handler may answer early and run on, and can
// be cancelled as long as it runs. Lines go out in the order they were put, from one queue
// with its own goroutine, so that a peer who does not read holds up only those who ask for room.
//
// Start with [Conn.Serve].
package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/panics"
)

// ErrClosed is what calls and notifications get when the connection has ended.
var ErrClosed = errors.New("the connection is closed")

// ErrEnd is the cause of what is stopped because the peer will say nothing more.
var ErrEnd = errors.New("the client has gone")

// A CancelledError is the cause of a context that the peer cancelled.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string {
	if e.Reason == "" {
		return "cancelled by the client"
	}
	return "cancelled by the client: " + e.Reason
}

// Options are what a connection is made of. The zero value answers nothing.
type Options struct {
	Methods []Method

	// Cancel is the notification that cancels a request by its requestId, in
	// both directions; empty if there is none.
	Cancel string

	// AnswerCancelled has a request that the peer cancelled answered all the same, with what its handler returns: its result, or
	// an error, which is CodeCancelled if it is the cause of the handler's context.
	AnswerCancelled bool

	NoBatches bool // a batch is refused as a whole

	MaxLine int   // bytes; 0 is 256 MiB. A longer line is refused
	Room    *Room // for long lines, shared with other connections; a line that does not fit is refused; nil is no bound
	// LineBounds, if it is not nil, is asked for MaxLine and Room whenever a line begins to arrive, in place of these.
	LineBounds func() (maxLine int, room *Room)

	MaxQueue int           // bytes that may wait for the peer before Notify does; 0 is 4 MiB
	MaxCalls int           // requests of the peer that may be under way, others are refused; while MaxQueue bytes wait nothing is read. 0 is no bound for either
	Full     *Error        // what a request is refused with when there are MaxCalls; nil is a CodeRequest
	Drain    time.Duration // how long the end waits for handlers, and again for the peer to read; 0 is 3 s
	Log      *slog.Logger  // nil: nowhere
	Panicked panics.Log    // keeps the trace of a handler that panicked; nil: nowhere

	// Plain leaves the member "jsonrpc" out of what is sent, and stamps notifications with emittedAtMs,
	// as the clients of an app-server expect.
	Plain bool

	// ReadToEnd has what the peer has sent read to its end also after a write has failed, as it does when the
	// peer has said something and closed. It is for streams whose directions end together, such as sockets.
	ReadToEnd bool

	// Reply is given the answers to what Send sent, and others that no caller waits for. It is called like a handler. While MaxCalls
	// of them are under way nothing is read. May be nil.
	Reply func(id json.RawMessage, result json.RawMessage, err error)
}

// A Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	o       Options
	methods map[string]Method
	out     *queue
	ending  context.Context         // ended when the peer will say nothing more
	end     context.CancelCauseFunc // of ending
	serving sync.WaitGroup          // handlers
	replies chan struct{}           // holds one for each call of Options.Reply; nil is no bound
	arrived []func()                // handlers that are about to begin; of the goroutine that reads

	mu      sync.Mutex
	calls   map[string]*inflight // by idKey: what the peer asked; guarded by mu
	pending map[int64]*Question  // what we asked; nil after the end; guarded by mu
	nextID  int64                // guarded by mu
	lanes   map[string]*inflight // the last one in each; guarded by mu
}

// New makes a connection. Nothing is read or written before Serve.
func New(ctx context.Context, o Options) *Conn {
	if o.MaxLine == 0 {
		o.MaxLine = 256 << 20
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 4 << 20
	}
	if o.Drain == 0 {
		o.Drain = 3 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{
		o: o, methods: map[string]Method{}, out: newQueue(o.MaxQueue),
		calls: map[string]*inflight{}, pending: map[int64]*Question{}, lanes: map[string]*inflight{},
	}
	if o.MaxCalls > 0 {
		c.replies = make(chan struct{}, o.MaxCalls)
	}
	for _, m := range o.Methods {
		if !m.Ours {
			c.methods[m.Name] = m
		}
	}
	c.ending, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

// Serve reads and answers until the stream or ctx ends or the peer stops
// reading for good; nil if the stream ended as it should. Before it returns, what runs
// is asked to stop ([Request.UntilEnd]), waited for, and answered. A read
// of in that blocks is left behind.
func (c *Conn) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	written := make(chan error, 1)            // buffered: the receiver may have left
	go func() { written <- c.out.run(out) }() // ends with c.out.stop
	base, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	defer kill(ErrClosed)

	err := c.read(ctx, base, in, written)
	cause := err
	if err == nil {
		cause = ErrEnd
	}
	c.failPending() // first, so that no caller withdraws a question that will not be answered
	c.end(cause)
	c.drain(base, kill)
	return err
}

// Flush waits until all that was put is written.
func (c *Conn) Flush(ctx context.Context) error { return c.out.flush(ctx) }

// Ending is a context that ends when the peer will say nothing more.
func (c *Conn) Ending() context.Context { return c.ending }

// Waiting is how many bytes wait for the peer to read them.
func (c *Conn) Waiting() int { return c.out.size() }

// Ended reports whether the peer will say nothing more.
func (c *Conn) Ended() bool { return c.ending.Err() != nil }

// drain waits for handlers and for what they wrote, for a while.
func (c *Conn) drain(base context.Context, kill context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { // ends with the last handler
		c.serving.Wait()
		close(done)
	}()
	c.waitFor(done)
	kill(ErrClosed)

	ctx, cancel := context.WithCancel(context.WithoutCancel(base))
	defer cancel()
	flushed := make(chan struct{})
	go func() { // ends with ctx at the latest
		defer close(flushed)
		_ = c.out.flush(ctx) // a peer that does not read gets no more
	}()
	c.waitFor(flushed)
	c.out.stop(ErrClosed)
}

// readTimeout is how long the end waits for a peer that reads nothing at all.
const readTimeout = 500 * time.Millisecond

// waitFor waits for done, but not for ever, nor for a peer that does not read: nothing
// more is written to that.
func (c *Conn) waitFor(done <-chan struct{}) {
	timer := time.NewTimer(c.o.Drain)
	defer timer.Stop()
	tick := time.NewTicker(readTimeout / 5)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			return
		case <-tick.C:
			if c.out.stuck(readTimeout) {
				c.out.stop(ErrClosed)
			}
		}
	}
}

func (c *Conn) tooLong() *Error {
	maxLine, room := c.o.MaxLine, c.o.Room
	if c.o.LineBounds != nil {
		maxLine, room = c.o.LineBounds()
	}
	if room != nil {
		return Errorf(CodeParse, "a line has more than %d bytes, or too many long lines are sent at once", maxLine)
	}
	return Errorf(CodeParse, "a line has more than %d bytes", maxLine)
}

type readLine struct {
	line []byte
	err  error
}

// read takes lines until the end, in one goroutine, which owns the order in which requests
// begin.
func (c *Conn) read(ctx, base context.Context, in io.Reader, written <-chan error) error {
	lines, quit := make(chan []readLine), make(chan struct{})
	defer close(quit)
	go func() { // ends with quit, or with the read that it is in
		r := newLineReader(in, c.o.MaxLine, c.o.Room)
		r.bounds = c.o.LineBounds
		defer r.release()
		for {
			batch := r.batch()
			select {
			case lines <- batch:
			case <-quit:
				return
			}
			if err := batch[len(batch)-1].err; err != nil && !errors.Is(err, errLong) {
				return
			}
		}
	}()
	var failed error // of a write
	for {
		select {
		case batch := <-lines:
			if over, err := c.takeBatch(ctx, base, batch, failed); over {
				return err
			}
			if c.o.MaxCalls > 0 { // what a peer asks takes room only while it reads the answers
				_ = c.out.room(ctx) // the end is seen below
			}
		case err := <-written:
			failed = fmt.Errorf("write: %w", err)
			if !c.o.ReadToEnd {
				return failed
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// takeBatch deals with lines that came together: all of their requests have arrived when the first one is begun. failed is why
// nothing can be written any more. It reports whether the stream is over, and why.
func (c *Conn) takeBatch(ctx, base context.Context, batch []readLine, failed error) (over bool, err error) {
	defer func() {
		for _, begin := range c.arrived {
			c.serving.Go(begin)
		}
		c.arrived = nil
	}()
	for _, l := range batch {
		switch {
		case errors.Is(l.err, errLong):
			c.out.put(c.response(nil, nil, c.tooLong()))
		case failed != nil && l.err != nil:
			return true, failed
		case errors.Is(l.err, io.EOF), errors.Is(l.err, io.ErrClosedPipe):
			return true, nil
		case l.err != nil:
			return true, fmt.Errorf("read: %w", l.err)
		default:
			c.take(ctx, base, l.line)
		}
	}
	return false, nil
}

// take deals with one line. What it waits for ends with ctx, handlers with base.
func (c *Conn) take(ctx, base context.Context, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	messages, many := parse(line)
	if many && c.o.NoBatches {
		messages, many = []message{{invalid: Errorf(CodeRequest, "batches are not supported")}}, false
	}
	answer := func(line []byte) {
		if line != nil {
			c.out.put(line)
		}
	}
	if many {
		answer = c.gather(messages)
	}
	for _, m := range messages {
		switch {
		case m.invalid != nil:
			answer(c.response(m.id, nil, m.invalid))
		case m.reply:
			c.takeReply(ctx, m)
		case m.id == nil && m.method == c.o.Cancel:
			c.cancel(m.params)
		case m.id == nil:
			c.notice(base, m)
		default:
			c.begin(base, m, answer)
		}
	}
}

// gather returns what takes the answers to a batch. They go out as one line when all are
// there; nil stands for a request that gets none.
func (c *Conn) gather(messages []message) func([]byte) {
	left := 0
	for _, m := range messages {
		if m.invalid != nil || !m.reply && m.id != nil {
			left++
		}
	}
	var mu sync.Mutex
	var all [][]byte
	return func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if line != nil {
			all = append(all, line)
		}
		if left--; left == 0 && len(all) > 0 {
			c.out.put(append(append([]byte("["), bytes.Join(all, []byte(","))...), ']'))
		}
	}
}

// notice starts the handler of a notification. An unknown one is none of our
// business.
func (c *Conn) notice(base context.Context, m message) {
	method, ok := c.methods[m.method]
	if !ok || !method.Notification {
		c.o.Log.Debug("unknown notification", "method", m.method)
		return
	}
	req := &Request{Method: m.method, Params: m.params, Conn: c}
	in := &inflight{cancel: func(error) {}, released: make(chan struct{})}
	if method.Lane != nil {
		in.lane = method.Lane(m.params)
	}
	c.enterLane(in)
	c.Go(func() {
		defer c.leave(in)
		in.waitTurn()
		if _, err := method.serve(base, req); err != nil {
			c.o.Log.Warn("notification", "method", m.method, "error", err)
		}
	})
}

// Notify sends a notification. It waits while too much waits for the peer.
// When ctx has ended nothing is sent.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	if ctx.Err() != nil {
		return fmt.Errorf("notify %s: %w", method, context.Cause(ctx))
	}
	if err := c.out.room(ctx); err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	r := wireRequest{Version: c.version(), Method: method, Params: params}
	if c.o.Plain {
		r.Emitted = time.Now().UnixMilli()
	}
	line, err := encode(r)
	if err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	c.out.put(line)
	return nil
}

// NotifyNow sends a notification without parameters. It never waits: it is for what is said once.
func (c *Conn) NotifyNow(method string) {
	line, err := encode(wireRequest{Version: c.version(), Method: method})
	if err == nil { // it is a word
		c.out.put(line)
	}
}

// Send sends a request with an id of the caller's choice. Its answer goes to Options.Reply. It waits while
// too much waits for the peer.
func (c *Conn) Send(ctx context.Context, id, method string, params any) error {
	if err := c.out.room(ctx); err != nil {
		return fmt.Errorf("request %s: %w", method, err)
	}
	line, err := encode(wireRequest{Version: c.version(), ID: id, Method: method, Params: params})
	if err != nil {
		return fmt.Errorf("request %s: %w", method, err)
	}
	c.out.put(line)
	return nil
}

// version is what "jsonrpc" says; empty if it is left out.
func (c *Conn) version() string {
	if c.o.Plain {
		return ""
	}
	return "2.0"
}
