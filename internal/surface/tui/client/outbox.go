package client

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Op is an op on its way to the conversation.
type Op struct {
	Make func(context.Context) (p.Op, error) // called beside Update
	Text string                              // of a message: to return if it is refused
	// Begins says that it is a message, which starts a conversation if there is none.
	Begins bool
	// Conversation is where it was asked for, which may not be on the screen any more when it is sent. Empty is the
	// one on the screen then.
	Conversation p.ConversationID
	Returned     []p.InputID                    // of a message: the returned messages that it delivers
	Then         func(p.Receipt, error) tea.Cmd // called by Update; nil shows the error
}

// NewOp is an Op that is made already.
func NewOp(op p.Op) *Op {
	return &Op{Make: func(context.Context) (p.Op, error) { return op, nil }}
}

// ThenHint shows a remark when the op is done, or the error.
func (op *Op) ThenHint(s Reporter, format string, args ...any) *Op {
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if err != nil {
			return s.ShowError(err)
		}
		return s.Hint(theme.OK, format, args...)
	}
	return op
}

// For has an op go to the conversation that is on the screen now, also if it waits and another one is shown when it is sent. A
// message goes where its draft goes, and what is asked for while a conversation is being opened is meant for that one.
func (op *Op) For(id p.ConversationID, opening bool) *Op {
	if !op.Begins && !opening {
		op.Conversation = id
	}
	return op
}

// An Outbox is a queue of ops of which one at most is on its way. The zero value is empty.
type Outbox struct {
	waiting  []*Op
	inFlight *Op
}

// Put puts an op at the end of the queue.
func (b *Outbox) Put(op *Op) { b.waiting = append(b.waiting, op) }

// PutFirst puts an op before those that wait.
func (b *Outbox) PutFirst(op *Op) { b.waiting = slices.Insert(b.waiting, 0, op) }

// Waiting reports whether an op waits to be sent.
func (b *Outbox) Waiting() bool { return len(b.waiting) > 0 }

// Next takes the next op off the queue. It is nil if there is none, or if another one is on its way.
func (b *Outbox) Next() *Op {
	if b.inFlight != nil || len(b.waiting) == 0 {
		return nil
	}
	op := b.waiting[0]
	b.waiting = b.waiting[1:]
	return op
}

// Send says that an op is on its way, until Done.
func (b *Outbox) Send(op *Op) { b.inFlight = op }

// Done says that the op that was on its way has been answered.
func (b *Outbox) Done() { b.inFlight = nil }

// Sending reports whether a message is on its way.
func (b *Outbox) Sending() bool { return b.inFlight != nil && b.inFlight.Begins }

// Messages are the texts that have not been taken yet.
func (b *Outbox) Messages() []string {
	list := b.Unsent()
	if b.Sending() {
		list = slices.Insert(list, 0, b.inFlight.Text)
	}
	return list
}

// Unsent are the texts of the messages that wait.
func (b *Outbox) Unsent() []string {
	var texts []string
	for _, op := range b.waiting {
		if op.Begins {
			texts = append(texts, op.Text)
		}
	}
	return texts
}

// Recall takes all messages off the queue. It returns their texts, and the returned messages that they were to deliver.
func (b *Outbox) Recall() (texts []string, returned []p.InputID) {
	for _, op := range b.waiting {
		if op.Begins {
			texts, returned = append(texts, op.Text), append(returned, op.Returned...)
		}
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(op *Op) bool { return op.Begins })
	return texts, returned
}

// RecallLast takes the last op off the queue if it is a message, and returns it, else nil.
func (b *Outbox) RecallLast() *Op {
	n := len(b.waiting)
	if n == 0 || !b.waiting[n-1].Begins {
		return nil
	}
	op := b.waiting[n-1]
	b.waiting = b.waiting[:n-1]
	return op
}

// A Sent is what became of an op.
type Sent struct {
	Op           *Op              // what was sent
	Conversation p.ConversationID // where
	Created      bool             // the conversation is new
	Receipt      p.Receipt        // what the conversation did with it
	Err          error            // nil if it was taken
}

// Submit makes an op and gives it to a conversation: to a new one, which create makes, if id is empty.
func Submit(ctx context.Context, e engine.Engine, id p.ConversationID, op *Op, create func(context.Context) (p.ConversationID, error)) Sent {
	out := Sent{Op: op, Conversation: id}
	made, err := op.Make(ctx)
	if err != nil {
		out.Err = err
		return out
	}
	if id == "" {
		if out.Conversation, out.Err = create(ctx); out.Err != nil {
			return out
		}
		out.Created = true
	}
	out.Receipt, out.Err = e.Submit(ctx, out.Conversation, made)
	return out
}
