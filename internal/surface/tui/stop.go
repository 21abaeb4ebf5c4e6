package tui

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Busy reports whether a turn runs, or a message that starts one is on its way.
func (m *model) Busy() bool { return m.conv.tr.Active || len(m.out.Messages()) > 0 }

// stopping reports whether what runs has been asked to stop.
func (m *model) stopping() bool {
	tr := m.conv.tr
	return m.stopNext || tr.Active && (tr.Stopping || m.stopTurn == tr.Turn)
}

// stop stops the turn. It is shown before anybody has answered. What was not
// taken by the conversation yet is returned; what is just being taken is
// stopped when it is.
func (m *model) stop() tea.Cmd {
	if !m.Busy() || m.stopping() {
		return nil
	}
	m.recall()
	m.stopNext = m.out.Sending()
	if !m.conv.tr.Active {
		return nil
	}
	m.stopTurn = m.conv.tr.Turn
	return m.interrupt(m.stopTurn)
}

// interrupted is the answer to an interrupt.
type interrupted struct {
	turn p.TurnID
	err  error
}

// interrupt does not go through the outbox: a stop waits for nothing. It names
// the turn that the person saw, so that it cannot hit the next.
func (m *model) interrupt(turn p.TurnID) tea.Cmd {
	ctx, e, id := m.ctx, m.o.Engine, m.conv.id
	return func() tea.Msg {
		_, err := e.Submit(ctx, id, p.Interrupt{Turn: turn})
		return interrupted{turn, err}
	}
}

func (m *model) onInterrupted(i interrupted) tea.Cmd {
	if i.err == nil || errors.Is(i.err, engine.ErrNothingToStop) { // it had just ended
		return nil
	}
	if m.stopTurn == i.turn {
		m.stopTurn = 0
	}
	return m.ShowError(i.err)
}

// stopTaken stops what a message led to that was on its way when the person
// asked for it.
func (m *model) stopTaken(op *client.Op, r p.Receipt) tea.Cmd {
	m.stopNext = false
	if r.State == p.TakenStarted || r.State == "" {
		m.stopTurn = r.Turn
		return m.interrupt(r.Turn)
	}
	back := client.NewOp(p.DeleteInput{Input: r.Input})
	back.Then = func(_ p.Receipt, err error) tea.Cmd {
		switch {
		case err == nil:
			m.Return(op.Text)
		case errors.Is(err, engine.ErrNoInput):
			// The stop has returned it, or the turn had taken it; or it came a
			// moment after the stop and has started the next turn.
			return m.sendFirst(stopIfAny(r.Turn + 1))
		default:
			return m.ShowError(err)
		}
		return nil
	}
	return m.sendFirst(back)
}

// stopIfAny stops a turn that may not be there. It goes through the outbox, so
// that it cannot hit what is sent after it.
func stopIfAny(turn p.TurnID) *client.Op {
	op := client.NewOp(p.Interrupt{Turn: turn})
	op.Then = func(p.Receipt, error) tea.Cmd { return nil }
	return op
}

// armTime is how long the first Ctrl-C counts.
const armTime = 3 * time.Second

type disarm struct{ at time.Time }

// ctrlC stops what runs; what is written stays. When nothing runs it takes away what
// is written, which the history keeps. When there is nothing of either, or the stop
// does not come to an end, the second one quits.
func (m *model) ctrlC() tea.Cmd {
	if m.Busy() && !m.stopping() {
		return m.stop()
	}
	if !m.armed.IsZero() {
		return m.quit()
	}
	if m.screen == nil && m.dialog == nil && !m.Busy() && !m.comp.Empty() {
		return tea.Batch(m.comp.Discard(), m.Hint(theme.Accent, "cleared · ↑ brings it back · Ctrl-C twice quits"))
	}
	m.armed = time.Now()
	at := m.armed
	return tea.Batch(
		m.Hint(theme.Accent, "press Ctrl-C again to quit; nothing is lost"),
		tea.Tick(armTime, func(time.Time) tea.Msg { return disarm{at} }),
	)
}

// disarm says that the next Ctrl-C does not quit any more: so the hint goes that says so.
func (m *model) disarm() {
	if !m.armed.IsZero() {
		m.armed = time.Time{}
		m.clearHint()
	}
}

// escape is the second Esc when there is nothing else for it to do.
func (m *model) escape() tea.Cmd {
	if m.Busy() || m.conv.id == "" || !m.comp.Empty() {
		return m.stop()
	}
	if !m.escaped {
		m.escaped = true
		return m.Hint(theme.Accent, "Esc again edits an earlier message")
	}
	m.escaped = false
	return m.rewinder().Pick()
}

// rewinder reverts turns.
func (m *model) rewinder() commands.Rewinder { return commands.Rewinder{Host: m, Undo: m.o.Undo} }
