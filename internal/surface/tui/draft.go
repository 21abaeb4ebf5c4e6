package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// keepDraft saves what is written, a moment after it has changed.
func (m *model) keepDraft() tea.Cmd {
	if m.leaving != nil || m.draft.Pending() { // what is written may be long: it is not put together for every key
		return nil
	}
	return m.draft.Changed(m.conv.id, m.unsent())
}

// saveDraft is the command that saves what is written, and nil if it is saved.
func (m *model) saveDraft() tea.Cmd { return m.draft.Save(m, m.conv.id, m.unsent()) }

// loadDraft brings back what was written in the conversation on the screen.
func (m *model) loadDraft() tea.Cmd {
	return m.draft.Load(m, func(text string) {
		if strings.HasPrefix(text, m.comp.Text()) { // which may have been returned a moment ago
			m.comp.SetText(text)
			return
		}
		if !m.conv.offers.Append(m.comp, text) {
			m.Return(text)
		}
	})
}

// unsent is what was written and not taken by the conversation.
func (m *model) unsent() string {
	parts := m.out.Unsent()
	if text := m.comp.Lasting(); strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}
