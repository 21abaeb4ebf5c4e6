package client

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// Busy reports whether a turn runs, or a message that starts one is on its way.
func (c *Client) Busy() bool { return c.Conv.Transcript.Active || len(c.Out.Messages()) > 0 }

// Stopping reports whether what runs has been asked to stop.
func (c *Client) Stopping() bool {
	tr := c.Conv.Transcript
	return c.stopNext || tr.Active && (tr.Stopping || c.stopTurn == tr.Turn)
}

// Stop stops the turn. It is shown before the engine has answered. What was not
// taken by the conversation yet is returned; what is just being taken is
// stopped when it is.
func (c *Client) Stop() tea.Cmd {
	if !c.Busy() || c.Stopping() {
		return nil
	}
	c.recall()
	c.stopNext = c.Out.Sending()
	if !c.Conv.Transcript.Active {
		return nil
	}
	c.stopTurn = c.Conv.Transcript.Turn
	return c.interrupt(c.stopTurn)
}

// interrupted is the answer to an interrupt.
type interrupted struct {
	turn p.TurnID
	err  error
}

// interrupt does not go through the outbox: a stop waits for nothing. It names
// the turn that the user saw, so that it cannot hit the next.
func (c *Client) interrupt(turn p.TurnID) tea.Cmd {
	ctx, e, id := c.ctx, c.o.Engine, c.Conv.ID
	return func() tea.Msg {
		_, err := e.Submit(ctx, id, p.Interrupt{Turn: turn})
		return interrupted{turn, err}
	}
}

func (c *Client) onInterrupted(i interrupted) tea.Cmd {
	if i.err == nil || errors.Is(i.err, engine.ErrNothingToStop) { // it had just ended
		return nil
	}
	if c.stopTurn == i.turn {
		c.stopTurn = 0
	}
	return c.screen.ShowError(i.err)
}

// stopTaken stops what a message led to that was on its way when the user
// asked for it.
func (c *Client) stopTaken(op *Op, r p.Receipt) tea.Cmd {
	c.stopNext = false
	if r.State == p.TakenStarted || r.State == "" {
		c.stopTurn = r.Turn
		return c.interrupt(r.Turn)
	}
	back := NewOp(p.DeleteInput{Input: r.Input})
	back.Then = func(_ p.Receipt, err error) tea.Cmd {
		switch {
		case err == nil:
			c.screen.Return(op.Text)
		case errors.Is(err, engine.ErrNoInput):
			// The stop has returned it, or the turn had taken it; or it came a
			// moment after the stop and has started the next turn.
			return c.sendFirst(stopIfAny(r.Turn + 1))
		default:
			return c.screen.ShowError(err)
		}
		return nil
	}
	return c.sendFirst(back)
}

// stopIfAny stops a turn that may not be there. It goes through the outbox, so
// that it cannot hit what is sent after it.
func stopIfAny(turn p.TurnID) *Op {
	op := NewOp(p.Interrupt{Turn: turn})
	op.Then = func(p.Receipt, error) tea.Cmd { return nil }
	return op
}
