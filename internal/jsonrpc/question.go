package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Question is a request of ours whose answer is awaited.
type Question struct {
	c      *Conn
	id     int64
	answer func(json.RawMessage, error)
}

// Ask sends the peer a request and returns at once. answer is called at most once, in a goroutine that
// the end of the connection waits for: with the result, an [*Error], or [ErrClosed] if
// there will be none.
func (c *Conn) Ask(method string, params any, answer func(json.RawMessage, error)) (*Question, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return nil, ErrClosed
	}
	q := &Question{c: c, id: c.nextID, answer: answer}
	line, err := encode(wireRequest{Version: c.version(), ID: &q.id, Method: method, Params: params})
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	c.nextID++
	c.pending[q.id] = q
	c.out.put(line) // under the lock, so that ids go out in order
	return q, nil
}

// Withdraw notifies the peer that no answer is needed any more, if there is a way to. An answer that it
// has sent by then is passed on all the same.
func (q *Question) Withdraw(reason string) {
	q.c.mu.Lock()
	_, open := q.c.pending[q.id]
	q.c.mu.Unlock()
	if !open || q.c.o.Cancel == "" {
		return
	}
	params := map[string]any{"requestId": q.id}
	if reason != "" && !q.c.o.AnswerCancelled { // that protocol has no reasons
		params["reason"] = reason
	}
	line, _ := encode(wireRequest{Version: q.c.version(), Method: q.c.o.Cancel, Params: params})
	q.c.out.put(line)
}

// Forget drops an answer that comes later.
func (q *Question) Forget() {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	delete(q.c.pending, q.id)
}

// Call asks the peer and waits for the answer, which may be an [*Error]. When
// ctx ends the peer is notified, if there is a way to, and an answer that comes later is dropped.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	type reply struct {
		result json.RawMessage
		err    error
	}
	replies := make(chan reply, 1) // room: we may have left
	q, err := c.Ask(method, params, func(result json.RawMessage, err error) { replies <- reply{result, err} })
	if err != nil {
		return nil, err
	}
	select {
	case r := <-replies:
		return r.result, r.err
	case <-ctx.Done():
	}
	q.Withdraw(context.Cause(ctx).Error())
	q.Forget()
	return nil, context.Cause(ctx)
}

func (c *Conn) takeReply(ctx context.Context, m message) {
	var id int64
	known := json.Unmarshal(m.id, &id) == nil
	c.mu.Lock()
	q := c.pending[id]
	if known {
		delete(c.pending, id)
	}
	c.mu.Unlock()
	if (!known || q == nil) && c.o.Reply != nil {
		c.passOn(ctx, m)
		return
	}
	if !known || q == nil {
		c.o.Log.Debug("an answer that no caller waits for", "id", string(m.id))
		return
	}
	c.Go(func() {
		if m.failure != nil {
			q.answer(nil, m.failure)
			return
		}
		q.answer(m.result, nil)
	})
}

// passOn gives an answer to Options.Reply. It waits while there are too many.
func (c *Conn) passOn(ctx context.Context, m message) {
	if c.replies != nil {
		select {
		case c.replies <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	c.Go(func() {
		defer func() {
			if c.replies != nil {
				<-c.replies
			}
		}()
		if m.failure != nil {
			c.o.Reply(m.id, nil, m.failure)
			return
		}
		c.o.Reply(m.id, m.result, nil)
	})
}

// Go runs fn like a handler: the end of the connection waits for it, and its panic ends nothing else. It may be called by
// a handler and by what Go runs.
func (c *Conn) Go(fn func()) {
	c.serving.Go(func() {
		if err := c.o.Panicked.Run(fn); err != nil {
			c.o.Log.Error("connection", "error", err)
		}
	})
}

// failPending ends every question of ours: no answer will come.
func (c *Conn) failPending() {
	c.mu.Lock()
	open := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, q := range open {
		c.Go(func() { q.answer(nil, ErrClosed) })
	}
}
