package jsonrpc

import (
	"context"
	"encoding/json"
	"sync"
)

// A Request is what a handler is given.
type Request struct {
	Method string
	ID     json.RawMessage // as the peer wrote it; nil for a notification
	Params json.RawMessage
	Conn   *Conn

	Arrived any // what Method.Arrive returned

	in *inflight
}

// An inflight is a request whose handler runs.
type inflight struct {
	key    string
	cancel context.CancelCauseFunc
	answer func([]byte) // where the answer goes; nil in it is none

	answered  bool // guarded by Conn.mu
	cancelled bool // guarded by Conn.mu

	lane     string
	before   *inflight     // the one before in the lane
	released chan struct{} // closed when the next in the lane may begin
	once     sync.Once
}

// begin starts the handler of a request.
func (c *Conn) begin(base context.Context, m message, answer func([]byte)) {
	method, ok := c.methods[m.method]
	if !ok || method.Notification {
		answer(c.response(m.id, nil, Errorf(CodeMethod, "there is no method %q", m.method)))
		return
	}
	key, _ := idKey(m.id)
	ctx, cancel := context.WithCancelCause(base)
	in := &inflight{key: key, cancel: cancel, answer: answer, released: make(chan struct{})}
	if method.Lane != nil {
		in.lane = method.Lane(m.params)
	}
	if err := c.enter(in, m.id); err != nil {
		cancel(nil)
		answer(c.response(m.id, nil, err))
		return
	}
	req := &Request{Method: m.method, ID: m.id, Params: m.params, Conn: c, in: in}
	over := func() {}
	if method.Arrive != nil {
		req.Arrived, over = method.Arrive(m.params)
	}
	serve := func() {
		defer c.leave(in)
		defer over()
		in.waitTurn()
		if err := c.o.Panicked.Run(func() { req.Reply(method.serve(ctx, req)) }); err != nil {
			c.o.Log.Error("request", "method", m.method, "error", err)
			req.Reply(nil, err)
		}
	}
	if method.First {
		serve()
		return
	}
	c.arrived = append(c.arrived, serve)
}

// enter registers a request, unless its id is that of one which is not answered
// yet, or there are too many.
func (c *Conn) enter(in *inflight, id json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.calls[in.key]; old != nil && !old.answered && !old.cancelled {
		return Errorf(CodeRequest, "the id %s is in use", id)
	}
	if c.o.MaxCalls > 0 && len(c.calls) >= c.o.MaxCalls {
		if c.o.Full != nil {
			return c.o.Full
		}
		return Errorf(CodeRequest, "more than %d requests at once", c.o.MaxCalls)
	}
	c.calls[in.key] = in
	c.putInLane(in)
	return nil
}

// enterLane puts a notification, which has no id, into its lane.
func (c *Conn) enterLane(in *inflight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putInLane(in)
}

// putInLane makes it the last one of its lane. mu is held.
func (c *Conn) putInLane(in *inflight) {
	if in.lane != "" {
		in.before = c.lanes[in.lane]
		c.lanes[in.lane] = in
	}
}

func (c *Conn) leave(in *inflight) {
	in.release()
	in.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[in.key] == in {
		delete(c.calls, in.key)
	}
	if in.lane != "" && c.lanes[in.lane] == in {
		delete(c.lanes, in.lane)
	}
}

// waitTurn waits until the request before in the lane has released it, also if it was
// cancelled meanwhile: those behind it must not overtake those before.
func (in *inflight) waitTurn() {
	if in.before != nil {
		<-in.before.released
		in.before = nil
	}
}

func (in *inflight) release() { in.once.Do(func() { close(in.released) }) }

// Release lets the next request of the same lane begin. The end of the handler
// does so anyway.
func (r *Request) Release() {
	if r.in != nil {
		r.in.release()
	}
}

// Reply answers the request; the handler may run on, and what it returns is
// then ignored. A request that was cancelled or answered before gets nothing.
func (r *Request) Reply(result any, err error) {
	if r.in == nil {
		return
	}
	c := r.Conn
	line := c.response(r.ID, result, err)
	c.mu.Lock()
	first, silent := !r.in.answered, r.in.cancelled
	r.in.answered = true
	if first && !silent { // under the lock, so that a cancel is before or after
		r.in.answer(line)
	}
	c.mu.Unlock()
	if first && silent {
		r.in.answer(nil)
	}
}

// UntilEnd returns ctx, ending also when the peer will say nothing more. What
// takes long uses it; what is quick is finished and answered all the same.
func (r *Request) UntilEnd(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.Conn.ending, func() { cancel(context.Cause(r.Conn.ending)) })
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

// cancel ends the context of a request. One that is not there has ended.
func (c *Conn) cancel(params json.RawMessage) {
	var p struct {
		ID     json.RawMessage `json:"requestId"`
		Reason string          `json:"reason"`
	}
	_ = json.Unmarshal(params, &p) // a bad one names no request
	key, ok := idKey(p.ID)
	c.mu.Lock()
	in := c.calls[key]
	if in != nil && !c.o.AnswerCancelled {
		in.cancelled = true
	}
	c.mu.Unlock()
	if !ok || in == nil {
		c.o.Log.Debug("cancel: no such request", "params", string(params))
		return
	}
	in.cancel(&CancelledError{p.Reason})
}
