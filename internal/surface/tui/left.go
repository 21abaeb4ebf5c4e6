package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// apart does something that leaves the conversation: when no turn runs, or when
// the turn only waits for a person, which it can do without us.
func (m *model) apart(do func() tea.Cmd) tea.Cmd {
	if !m.Busy() {
		return do()
	}
	if len(m.conv.asks) == 0 || m.stopping() || len(m.out.Messages()) > 0 {
		return m.ShowError(engine.ErrBusy)
	}
	ctx, e, id := m.ctx, m.o.Engine, m.conv.id
	return func() tea.Msg {
		snap, err := e.Resume(ctx, id)
		return terminal.Done{Then: func() tea.Cmd {
			switch {
			case err != nil:
				return m.ShowError(err)
			case !snap.Waiting, m.conv.id != id, len(m.conv.answered) > 0 && slices.ContainsFunc(m.conv.asks, m.conv.isAnswered):
				return m.ShowError(engine.ErrBusy)
			}
			return do()
		}}
	}
}

// leaveConversation closes the conversation on the screen when another one takes its place,
// so that others can open it. If commands still run in it, it stays open.
func (m *model) leaveConversation(next p.ConversationID) tea.Cmd {
	id, running := m.conv.id, len(m.conv.tr.Running)
	m.leftOpen = slices.DeleteFunc(m.leftOpen, func(k p.ConversationID) bool { return k == next })
	if id == "" || id == next {
		return nil
	}
	if running > 0 {
		m.leftOpen = append(m.leftOpen, id)
		return m.Hint(theme.Accent, "%s keeps running in the other conversation until you quit", screen.Count(running, "background command"))
	}
	return m.release(id)
}

// releaseUnused closes a conversation that may have been opened for nothing.
func (m *model) releaseUnused(id p.ConversationID) tea.Cmd {
	if id == m.conv.id || m.opening != nil && id == m.opening.id || slices.Contains(m.leftOpen, id) {
		return nil
	}
	return m.release(id)
}

func (m *model) release(id p.ConversationID) tea.Cmd {
	ctx, e := m.ctx, m.o.Engine
	return func() tea.Msg {
		if err := e.Release(ctx, id); err != nil && ctx.Err() == nil {
			return terminal.Done{Then: func() tea.Cmd { return m.ShowError(err) }}
		}
		return nil
	}
}
