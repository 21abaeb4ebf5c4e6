package remote

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-agent/fermata/engine"
)

// How much of a stream is kept ready for its client, and given at once.
const (
	readyEvents = 256
	batchBytes  = 256 << 10
)

// A stream is a subscription of a client. Its goroutine follows the conversation
// for as long as its client takes what it gives.
type stream struct {
	ready  chan piece // sent by run; closed when that ends
	cancel context.CancelCauseFunc
}

// A piece of a stream is an event, the end of the past, or the error at its end.
type piece struct {
	event json.RawMessage
	live  bool
	err   error
}

// attach begins a stream.
func (c *client) attach(_ context.Context, params attachParams) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	st := &stream{
		ready:  make(chan piece, readyEvents), // so that a burst of small events is one batch
		cancel: cancel,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, taken := c.streams[params.Stream]; {
	case taken:
		cancel(nil)
		return errors.New("the number of the stream is in use")
	case len(c.streams) >= maxStreams:
		cancel(nil)
		return errStreams
	}
	c.streams[params.Stream] = st
	c.running.Go(func() { // ends with ctx, which the end of the connection and detach end
		defer close(st.ready)
		if err := c.server.Panicked.Run(func() { st.run(ctx, c.server, params) }); err != nil {
			st.put(ctx, piece{err: err})
		}
	})
	return nil
}

// run follows the conversation.
func (st *stream) run(ctx context.Context, s *Server, params attachParams) {
	gone := false
	live := func() { gone = !st.put(ctx, piece{live: true}) }
	for e, err := range s.engine.Attach(ctx, params.ID, params.After, live) {
		if err == nil {
			var text json.RawMessage
			if text, err = json.Marshal(e); err == nil {
				if gone || !st.put(ctx, piece{event: text}) {
					return
				}
				continue
			}
		}
		if ctx.Err() != nil { // it is the connection that ends, not what is followed
			return
		}
		if errors.Is(err, engine.ErrClosed) && s.leaving.Load() {
			err = errors.Join(err, ErrLeaving)
		}
		st.put(ctx, piece{err: err})
		return
	}
}

// put makes a piece ready, unless ctx ends.
func (st *stream) put(ctx context.Context, x piece) bool {
	select {
	case st.ready <- x:
		return true
	case <-ctx.Done():
		return false
	}
}

// next returns what is ready of a stream, or waits for it.
func (c *client) next(ctx context.Context, params streamParams) (batch, error) {
	c.mu.Lock()
	st := c.streams[params.Stream]
	c.mu.Unlock()
	if st == nil {
		return batch{}, errStream
	}
	var b batch
	for size := 0; size < batchBytes; {
		var x piece
		ok := true
		if size == 0 && b.Live == nil {
			select {
			case x, ok = <-st.ready:
			case <-ctx.Done():
				return batch{}, context.Cause(ctx)
			}
		} else {
			select {
			case x, ok = <-st.ready:
			default:
				return b, nil
			}
		}
		switch {
		case !ok:
			if size == 0 {
				return b, errStream
			}
			return b, nil
		case x.err != nil:
			b.Error = encodeError(x.err)
			return b, nil
		case x.live:
			n := len(b.Events)
			b.Live = &n
		default:
			b.Events = append(b.Events, x.event)
			size += len(x.event)
		}
	}
	return b, nil
}

// detach ends a stream.
func (c *client) detach(_ context.Context, params streamParams) error {
	c.mu.Lock()
	st := c.streams[params.Stream]
	delete(c.streams, params.Stream)
	c.mu.Unlock()
	if st != nil {
		st.cancel(context.Canceled)
	}
	return nil
}
