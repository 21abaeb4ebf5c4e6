package client

import (
	"cmp"
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Send puts an op into the outbox.
func (c *Client) Send(op *Op) tea.Cmd {
	c.Out.Put(op.For(c.Conv.ID, c.Opening()))
	return c.Flush()
}

// sendFirst puts an op before those that wait.
func (c *Client) sendFirst(op *Op) tea.Cmd {
	c.Out.PutFirst(op.For(c.Conv.ID, c.Opening()))
	return c.Flush()
}

// Flush sends the next op, if none is on its way.
func (c *Client) Flush() tea.Cmd {
	if c.Opening() || c.Hold || c.screen.Quitting() {
		return nil
	}
	op := c.Out.Next()
	if op == nil {
		return nil
	}
	id := cmp.Or(op.Conversation, c.Conv.ID)
	if id == "" && !op.Begins {
		return c.onReceipt(op, p.Receipt{}, ErrNoConversation)
	}
	c.Out.Send(op)
	ctx, o, requested, created := c.ctx, c.o, c.requested, c.created
	return func() tea.Msg {
		return Submit(ctx, o.Engine, id, op, func(ctx context.Context) (p.ConversationID, error) {
			s, err := o.Settings(ctx)
			if err != nil {
				return "", err
			}
			id, err := o.Engine.Create(ctx, requested.Apply(s))
			if err == nil {
				created.Store(&id)
				o.shown(id)
			}
			return id, err
		})
	}
}

func (o Options) shown(id p.ConversationID) {
	if o.Shown != nil {
		o.Shown(id)
	}
}

// ErrNoConversation says that there is nothing yet that a command could act on.
var ErrNoConversation = errors.New("there is no conversation yet: send a message first")

// onSent takes the answer to an op.
func (c *Client) onSent(s Sent) tea.Cmd {
	c.Out.Done()
	c.created.Store(nil)
	if s.Err != nil && c.screen.Quitting() {
		return nil // it would not be seen; the history has the text
	}
	var next tea.Cmd
	switch {
	case s.Created:
		c.begin(s.Conversation, engine.Snapshot{}, 0)
		next = c.Conv.Feed.Next
	case c.Conv.Feed == nil && c.Conv.ID == s.Conversation && s.Err == nil: // it had ended; the conversation is open again
		c.follow(c.Conv.Last)
		next = c.Conv.Feed.Next
	}
	return tea.Batch(next, c.onReceipt(s.Op, s.Receipt, s.Err), c.Flush())
}

// onReceipt deals with what became of an op.
func (c *Client) onReceipt(op *Op, r p.Receipt, err error) tea.Cmd {
	if err != nil && op.Begins {
		c.giveBack(op)
		c.stopNext = false
	}
	switch {
	case op.Then != nil:
		return op.Then(r, err)
	case err != nil:
		return c.screen.ShowError(err)
	case op.Begins && c.stopNext:
		return c.stopTaken(op, r)
	}
	return nil
}

// giveBack returns a message to the composer that was not sent.
func (c *Client) giveBack(op *Op) {
	c.screen.Return(op.Text)
	c.screen.Reoffer(op.Returned)
}

// recall returns what waits to be sent to the composer.
func (c *Client) recall() {
	texts, returned := c.Out.Recall()
	c.screen.Return(texts...)
	c.screen.Reoffer(returned)
}

// EditPending returns the last message that waits to the composer. text makes of its content what was written.
func (c *Client) EditPending(text func([]p.Content) string) tea.Cmd {
	if op := c.Out.RecallLast(); op != nil {
		c.giveBack(op)
		return nil
	}
	waiting := c.Conv.Transcript.Inputs
	if len(waiting) == 0 {
		return nil
	}
	in := waiting[len(waiting)-1]
	op := NewOp(p.DeleteInput{Input: in.Input})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if errors.Is(err, engine.ErrNoInput) {
			return c.screen.Hint(theme.Warn, "too late: the message has been delivered")
		}
		if err != nil {
			return c.screen.ShowError(err)
		}
		c.screen.Return(text(in.Content))
		return nil
	}
	return c.Send(op)
}

// TakeReturned takes returned messages from the conversation: they are a draft from then on.
func (c *Client) TakeReturned(ids []p.InputID) tea.Cmd {
	op := NewOp(p.ResolveReturned{Inputs: ids, As: p.ResolvedTaken})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if errors.Is(err, engine.ErrNotReturned) {
			return c.screen.Hint(theme.Warn, "another client has sent, taken or dropped this message")
		}
		if err != nil {
			return c.screen.ShowError(err)
		}
		return nil
	}
	return c.Send(op)
}
