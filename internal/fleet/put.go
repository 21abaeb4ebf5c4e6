package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// How long to wait before a message is sent again: when the servers have not answered, and when they have refused it for a
// reason that passes.
const (
	sendAgain    = requestTime
	refusedAgain = 250 * time.Millisecond
)

// Put adds work for machines with a label, or for any if that is empty, and returns its number when it is durable. It
// sends the work again until the servers have answered or ctx ends: they know the message by its name, so it is stored
// once. After an error the work may be in the queue all the same.
func (q *Queue) Put(ctx context.Context, label string, w Work) (uint64, error) {
	w.Version = w.version()
	data, err := json.Marshal(w)
	if err != nil {
		return 0, err
	}
	if room := int(q.link.Conn.MaxPayload()) - 1024; len(data) > room {
		return 0, fmt.Errorf("the prompt has %d bytes, the NATS servers take %d: name files instead, or raise max_payload", len(data), room)
	}
	m := natsgo.NewMsg(q.subject(label))
	m.Data = data
	// Not the name of the op: work that was withdrawn can be submitted again under that.
	m.Header.Set(jetstream.MsgIDHeader, rand.Text())
	number, err := q.publish(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("submit the turn: %w", err)
	}
	_ = q.link.Conn.Publish(q.hints(), nil) // else it is found a moment later
	return number, nil
}

// publish sends a message, which has an id, until one of its acknowledgements is there. They all come to the same inbox: a
// late one counts.
func (q *Queue) publish(ctx context.Context, m *natsgo.Msg) (uint64, error) {
	nc := q.link.Conn
	m.Reply = nc.NewInbox()
	acks, err := nc.SubscribeSync(m.Reply)
	if err != nil {
		return 0, err
	}
	defer func() { _ = acks.Unsubscribe() }() // else the connection has ended
	for {
		err := nc.PublishMsg(m)
		if err == nil {
			var number uint64
			if number, err = awaitAck(ctx, acks); err == nil {
				return number, nil
			}
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if errors.Is(err, errNoAck) {
			continue // it has waited
		}
		if !refusal.IsTransient(err) {
			return 0, err
		}
		select {
		case <-time.After(refusedAgain):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

var errNoAck = errors.New("the NATS servers have not answered")

// awaitAck waits for the answer to a message that was sent, until it is time to send it again.
func awaitAck(ctx context.Context, acks *natsgo.Subscription) (uint64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sendAgain, errNoAck)
	defer cancel()
	m, err := acks.NextMsgWithContext(ctx)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	if m.Header.Get("Status") == "503" {
		return 0, natsgo.ErrNoResponders
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return 0, fmt.Errorf("unreadable answer: %v", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}
