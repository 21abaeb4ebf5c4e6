package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/host"
	p "github.com/fermata-agent/fermata/protocol"
)

// Drafts keeps what was written and not sent, for each conversation; an empty id
// stands for the one that has not begun. An empty text removes a draft. Both are
// called from commands, one at a time.
type Drafts interface {
	Load(id string) (string, error)
	Save(id, text string) error
}

// draftTime is how much writing a crash may cost.
const draftTime = 200 * time.Millisecond

// A draft is what is saved of what is written: whatever ends the program, the next one
// has it.
type draft struct {
	of      p.ConversationID
	text    string
	pending bool // it is about to be saved
	failed  bool // and the error was shown
}

type draftDue struct{}

// keepDraft saves what is written, a moment after it has changed.
func (m *model) keepDraft() tea.Cmd {
	if m.o.Drafts == nil || m.draft.pending || m.leaving != nil || m.draftIs() {
		return nil
	}
	m.draft.pending = true
	return tea.Tick(draftTime, func(time.Time) tea.Msg { return draftDue{} })
}

// draftIs reports whether what is written is saved.
func (m *model) draftIs() bool {
	return m.draft.of == m.conv.id && m.draft.text == m.unsent()
}

// saveDraft is the command that saves what is written, and nil if it is saved.
func (m *model) saveDraft() tea.Cmd {
	if m.o.Drafts == nil || m.draftIs() {
		m.draft.pending = false
		return nil
	}
	store, before, now := m.o.Drafts, m.draft, draft{of: m.conv.id, text: m.unsent()}
	m.draft.of, m.draft.text = now.of, now.text
	return func() tea.Msg {
		err := store.Save(string(now.of), now.text)
		if before.of != now.of && before.text != "" && err == nil { // it has come along
			err = store.Save(string(before.of), "")
		}
		return host.Done{Then: func() tea.Cmd {
			m.draft.pending = false
			if err != nil && !m.draft.failed {
				m.draft.failed = true
				return m.ShowError(err)
			}
			return nil
		}}
	}
}

// loadDraft brings back what was written in the conversation on the screen.
func (m *model) loadDraft() tea.Cmd {
	if m.o.Drafts == nil {
		return nil
	}
	store, id := m.o.Drafts, m.conv.id
	return func() tea.Msg {
		text, err := store.Load(string(id))
		return host.Done{Then: func() tea.Cmd {
			switch {
			case err != nil:
				return m.ShowError(err)
			case text == "" || m.conv.id != id:
				return nil
			case strings.HasPrefix(text, m.comp.Text()): // which may have been returned a moment ago
				m.comp.SetText(text)
			default:
				m.Return(text)
			}
			m.draft.of, m.draft.text = id, text
			return nil
		}}
	}
}

// unsent is what was written and not taken by the conversation.
func (m *model) unsent() string {
	parts := m.out.Unsent()
	if text := m.comp.Lasting(); strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}
