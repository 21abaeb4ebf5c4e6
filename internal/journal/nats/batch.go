package nats

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// retryWait is the pause before something is tried again.
const retryWait = 50 * time.Millisecond

// A batch is a body on its way to the stream, in one message or in pieces.
type batch struct {
	link    *link
	subject string
	meta    meta   // of the last piece
	was     uint64 // number of the last record before the batch: it holds until the batch is there whole
	pieces  [][]byte
	prev    uint64 // sequence of the last message of the subject
	sent    sent   // the first piece
	err     error  // why it could not be sent
}

// headRoom is kept free in each message for its headers.
const headRoom = 4 << 10

// payload returns how many bytes of a body fit into one message.
func (c *conn) payload() int { return max(int(c.nc.MaxPayload())-headRoom, 1<<10) }

// newBatch prepares a batch that follows the message with the sequence prev, and the
// record of the number was.
func (l *link) newBatch(subject string, m meta, was uint64, body []byte, prev uint64) *batch {
	m.ID = l.nextID()
	b := &batch{link: l, subject: subject, meta: m, was: was, prev: prev}
	room := l.payload()
	for len(body) > room {
		b.pieces = append(b.pieces, body[:room])
		body = body[room:]
	}
	b.pieces = append(b.pieces, body)
	return b
}

// deliver sends a body and waits until it is stored.
func (l *link) deliver(ctx context.Context, subject string, m meta, body []byte, prev uint64) (uint64, error) {
	b := l.newBatch(subject, m, m.Last, body, prev)
	b.begin()
	d := b.finish(ctx)
	return d.seq, d.err
}

func (b *batch) begin() { b.sent, b.err = b.send(0) }

func (b *batch) send(i int) (sent, error) {
	m := b.metaOf(i)
	m.Prev = b.prev
	return b.link.send(expect(message(b.subject, m, b.pieces[i]), b.prev))
}

// metaOf returns the meta of a piece.
func (b *batch) metaOf(i int) meta {
	m := b.meta
	if n := len(b.pieces); n > 1 {
		m.Piece, m.Pieces = i+1, n
		if i+1 < n {
			m.Last = b.was
		}
	}
	return m
}

// finish waits until the batch is stored, and sends what is necessary again.
func (b *batch) finish(ctx context.Context) delivery {
	var d delivery
	for i := range b.pieces {
		s, err := b.sent, b.err
		if i > 0 {
			s, err = b.send(i)
		}
		seq, err := b.settle(ctx, i, s, err)
		if err != nil {
			return delivery{err: err}
		}
		if i == 0 {
			d.first = seq
		}
		b.prev, d.seq = seq, seq
	}
	return d
}

// settle waits until a piece that was sent is stored. If that is not known, it
// looks for it; what is not there is sent again. The server would refuse it twice.
func (b *batch) settle(ctx context.Context, i int, s sent, err error) (uint64, error) {
	for {
		if err == nil {
			var seq uint64
			if seq, err = b.await(ctx, s); err == nil {
				return seq, nil
			}
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if !refusal.IsTransient(err) {
			return 0, err
		}
		switch m, looked := b.look(ctx); {
		case looked != nil && !refusal.IsTransient(looked):
			return 0, looked
		case looked != nil:
			err = looked
		case m.seq == b.prev:
			s, err = b.send(i)
		case m.Prev == b.prev && m.Node == b.meta.Node && m.ID == b.meta.ID:
			return m.seq, nil
		default:
			return 0, &takenError{m.Node}
		}
		if err != nil {
			select {
			case <-time.After(retryWait):
			case <-ctx.Done():
			}
		}
	}
}

func (b *batch) await(ctx context.Context, s sent) (uint64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackTimeout, refusal.ErrNoAnswer)
	defer cancel()
	return s.wait(ctx)
}

// look returns the last message of the subject.
func (b *batch) look(ctx context.Context) (*stored, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackTimeout, refusal.ErrNoAnswer)
	defer cancel()
	m, err := b.link.last(ctx, b.subject)
	if err == errNoMessage {
		return &stored{}, nil // its sequence is 0
	}
	return m, err
}
