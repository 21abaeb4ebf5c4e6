package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// A conn speaks to one stream. What fermata needs most is requested by hand: the
// library would make a consumer for each read, which a cluster has to agree upon.
type conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	api    string // prefix of JetStream's subjects
	stream string

	inbox string // prefix of the subjects that acks are sent to
	acks  *nats.Subscription

	mu      sync.Mutex
	next    uint64                    // the last name given to a message or an ack
	waiting map[string]chan *nats.Msg // by the last part of the subject
}

// newConn begins to listen for acks.
func newConn(nc *nats.Conn, js jetstream.JetStream, api, stream string) (*conn, error) {
	c := &conn{nc: nc, js: js, api: api, stream: stream, inbox: nc.NewInbox(), waiting: make(map[string]chan *nats.Msg)}
	var err error
	c.acks, err = nc.Subscribe(c.inbox+".*", c.acked)
	if err != nil {
		return nil, err
	}
	return c, c.acks.SetPendingLimits(-1, -1)
}

func (c *conn) acked(m *nats.Msg) {
	token := m.Subject[len(c.inbox)+1:]
	c.mu.Lock()
	ch := c.waiting[token]
	delete(c.waiting, token)
	c.mu.Unlock()
	if ch != nil {
		ch <- m
	}
}

// A sent message waits for its ack.
type sent struct {
	conn  *conn
	token string
	ack   chan *nats.Msg // room for one
}

// send sends a message. Messages are stored in the order in which they were sent.
func (c *conn) send(m *nats.Msg) (sent, error) {
	s := sent{conn: c, ack: make(chan *nats.Msg, 1)}
	c.mu.Lock()
	c.next++
	s.token = strconv.FormatUint(c.next, 36)
	c.waiting[s.token] = s.ack
	c.mu.Unlock()
	m.Reply = c.inbox + "." + s.token
	if err := c.nc.PublishMsg(m); err != nil {
		s.forget()
		return sent{}, err
	}
	return s, nil
}

// nextID returns a number that no other message of this connection has.
func (c *conn) nextID() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next
}

func (s sent) forget() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	delete(s.conn.waiting, s.token)
}

// wait returns the sequence that the message was given.
func (s sent) wait(ctx context.Context) (uint64, error) {
	select {
	case m := <-s.ack:
		return parseAck(m)
	case <-ctx.Done():
		s.forget()
		return 0, context.Cause(ctx)
	}
}

func parseAck(m *nats.Msg) (uint64, error) {
	if m.Header.Get("Status") == "503" {
		return 0, nats.ErrNoResponders
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return 0, fmt.Errorf("unreadable acknowledgement: %v", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// message makes a message of this stream.
func message(subject string, m meta, body []byte) *nats.Msg {
	msg := nats.NewMsg(subject)
	msg.Header.Set(wire.Header, m.Encode(body))
	msg.Data = body
	return msg
}

// expect makes the server refuse the message unless the last message of its
// subject has that sequence.
func expect(m *nats.Msg, last uint64) *nats.Msg {
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	return m
}

// A meta says what a message is.
type meta = wire.Meta

// A stored message is one that the stream has.
type stored struct {
	meta
	subject string
	seq     uint64
	time    time.Time
	data    []byte
	err     error // the message is damaged
}

func (m *stored) isText() bool { return strings.HasSuffix(m.subject, textSuffix) }

var errNoMessage = errors.New("no such message")

// last returns the last message of a subject, as the leader of the stream knows it.
func (c *conn) last(ctx context.Context, subject string) (*stored, error) {
	return c.get(ctx, getRequest{LastFor: subject})
}

// first returns the first message of a subject from a sequence on.
func (c *conn) first(ctx context.Context, from uint64, subject string) (*stored, error) {
	return c.get(ctx, getRequest{Seq: max(from, 1), NextFor: subject})
}

// at returns the message with a sequence.
func (c *conn) at(ctx context.Context, seq uint64) (*stored, error) {
	return c.get(ctx, getRequest{Seq: seq})
}

type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	LastFor  string `json:"last_by_subj,omitempty"`
	NextFor  string `json:"next_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
}

func (c *conn) get(ctx context.Context, r getRequest) (m *stored, err error) {
	err = persist(ctx, func(ctx context.Context) error {
		m, err = c.getOnce(ctx, r)
		return err
	})
	return m, err
}

func (c *conn) getOnce(ctx context.Context, r getRequest) (*stored, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	body, _ := json.Marshal(r)
	m, err := c.nc.RequestWithContext(ctx, c.api+"STREAM.MSG.GET."+c.stream, body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("unreadable answer: %v", err)
	}
	if e := answer.Error; e != nil {
		if e.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return nil, errNoMessage
		}
		return nil, e
	}
	header, err := nats.DecodeHeadersMsg(answer.Message.Header)
	if err != nil {
		header = nil
	}
	a := answer.Message
	return newStored(a.Subject, a.Seq, a.Time, header.Get(wire.Header), a.Data), nil
}

func newStored(subject string, seq uint64, at time.Time, head string, data []byte) *stored {
	s := &stored{subject: subject, seq: seq, time: at, data: data}
	s.meta, s.err = wire.ParseMeta(head)
	if s.err == nil {
		s.err = s.Verify(data)
	}
	return s
}

// How much one request reads.
const (
	batchMessages = 512
	batchBytes    = 4 << 20
)

// How often a replica that is behind is asked again, and how long to wait between.
const (
	behindTries = 20
	behindWait  = 10 * time.Millisecond
)

// scan calls f with the messages of a subject from one sequence up to another,
// which exists, in order, until f returns false.
func (c *conn) scan(ctx context.Context, subject string, from, to uint64, f func(*stored) bool) error {
	for tries := 0; from <= to; {
		batch, err := c.batch(ctx, subject, from)
		if err != nil {
			return err
		}
		for _, m := range batch {
			if m.seq > to || !f(m) {
				return nil
			}
			from = m.seq + 1
		}
		if len(batch) > 0 {
			tries = 0
			continue
		}
		// The answer may come from a replica that has not got it yet, or it was
		// deleted meanwhile: the leader knows.
		if tries++; tries < behindTries {
			select {
			case <-time.After(behindWait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if tries > 1 {
				continue
			}
		}
		m, err := c.first(ctx, from, subject)
		if errors.Is(err, errNoMessage) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.seq > to {
			return nil
		}
		if tries >= behindTries {
			if !f(m) {
				return nil
			}
			from = m.seq + 1
		}
	}
	return nil
}

// batch reads some messages of a subject from a sequence on: none if there are
// none, or if the replica that answered does not have them yet.
func (c *conn) batch(ctx context.Context, subject string, from uint64) (all []*stored, err error) {
	err = persist(ctx, func(ctx context.Context) error {
		all, err = c.batchOnce(ctx, subject, from)
		return err
	})
	return all, err
}

func (c *conn) batchOnce(ctx context.Context, subject string, from uint64) ([]*stored, error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	body, _ := json.Marshal(getRequest{Seq: max(from, 1), NextFor: subject, Batch: batchMessages, MaxBytes: batchBytes})
	if err := c.nc.PublishRequest(c.api+"DIRECT.GET."+c.stream, inbox, body); err != nil {
		return nil, err
	}
	var all []*stored
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return all, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404":
			return all, nil
		case "503":
			return all, nats.ErrNoResponders
		default:
			return all, fmt.Errorf("the server answered %s %s", status, m.Header.Get("Description"))
		}
		seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return all, fmt.Errorf("a message without a sequence: %v", err)
		}
		at, _ := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
		all = append(all, newStored(m.Header.Get(jetstream.SubjectHeader), seq, at, m.Header.Get(wire.Header), m.Data))
	}
}
