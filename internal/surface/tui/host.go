package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	_ commands.Host = (*model)(nil)
	_ client.Screen = (*model)(nil)
)

// Theme is that of everything on the screen.
func (m *model) Theme() *theme.Theme { return m.theme }

// Quitting reports whether the program is about to end.
func (m *model) Quitting() bool { return m.leaving != nil }

// Pick shows a list in place of everything else.
func (m *model) Pick(list *dialog.Picker) { m.overlay = list }

// ShowPage shows a text in place of everything else.
func (m *model) ShowPage(s *draw.Page) { m.overlay = dialog.Paper{Page: s} }

// Ask asks a question in place of the composer.
func (m *model) Ask(question dialog.Confirm, chosen func(id string) tea.Cmd) {
	m.overlay = nil
	m.ask.Confirm(question, chosen)
}

// Hint shows a short remark in place of the status line.
func (m *model) Hint(role theme.Role, format string, args ...any) tea.Cmd {
	return m.hint.Show(role, format, args...)
}

// ShowError shows an error: in the conversation if it is too long for a line.
func (m *model) ShowError(err error) tea.Cmd {
	text := client.Explain(err)
	if safetext.Width(safetext.Line(text)) > m.width {
		m.note(true, "%s", text)
		m.view.Bottom()
		return nil
	}
	return m.Hint(theme.Error, "%s", text)
}

// note is a remark of this program in the conversation.
func (m *model) note(warn bool, format string, args ...any) {
	m.noteCount++
	it := &transcript.Item{
		ID: fmt.Sprintf("tui%d", m.noteCount), Kind: transcript.Notice, Status: transcript.Done, Warn: warn,
		Text: fmt.Sprintf(format, args...),
	}
	m.notes = append(m.notes, it)
	m.view.Put(it)
}

func (m *model) putNotes() {
	for _, it := range m.notes {
		m.view.Put(it)
	}
}

// ShortDir is a directory as it is shown.
func (m *model) ShortDir(dir string) string { return safetext.Line(screen.InHome(dir, m.o.Home)) }

// Submit sends a message.
func (m *model) Submit(text string, change *p.Overrides) tea.Cmd {
	return m.submit(composer.Submit{Text: text}, change)
}

// submit sends what was written, with changes of the settings for its turn and those after it.
func (m *model) submit(a composer.Submit, change *p.Overrides) tea.Cmd {
	m.view.Bottom()
	returned, readers := m.offers.Send(a.Text), m.o.Readers
	return m.Send(&client.Op{
		Begins: true, Text: m.comp.WithImages(a.Text, a.Images), Returned: returned,
		Make: func(ctx context.Context) (p.Op, error) {
			content, err := a.Content(ctx, readers)
			return p.UserTurn{Content: content, WhenBusy: a.Mode, Overrides: change, Returned: returned}, err
		},
	})
}

// shell runs a command of the user.
func (m *model) shell(line string) tea.Cmd {
	text := "!" + line
	if m.Busy() {
		m.comp.SetText(text)
		return m.Hint(theme.Warn, "your own commands can run when the turn has ended")
	}
	m.view.Bottom()
	op := client.NewOp(p.UserShell{Command: line})
	op.Begins, op.Text = true, text
	return m.Send(op)
}

// Return puts texts that were not delivered before what is written.
func (m *model) Return(texts ...string) { m.comp.Prepend(texts...) }

// Reoffer offers returned messages again that were not sent after all.
func (m *model) Reoffer(ids []p.InputID) {
	m.offers.Again(ids)
	m.offerReturned()
}

// offerReturned puts returned messages into the composer while no turn runs, and returns their texts.
func (m *model) offerReturned() []string {
	if !m.conv.CaughtUp() {
		return nil
	}
	tr := m.conv.Transcript
	return m.offers.Sync(m.comp, tr.Undelivered(), tr.Active, m.comp.Written)
}

// takeEdited takes messages from the conversation that were offered and have been edited: then the draft has them,
// which is saved first.
func (m *model) takeEdited() tea.Cmd {
	id, ids := m.conv.ID, m.offers.Edited(m.comp)
	if len(ids) == 0 {
		return nil
	}
	return m.draft.SaveThen(m, id, m.unsent(), func() tea.Cmd {
		if m.conv.ID != id { // it is offered again when the conversation is
			return nil
		}
		return m.TakeReturned(ids)
	})
}

// keepDraft saves what is written, a moment after it has changed.
func (m *model) keepDraft() tea.Cmd {
	if m.leaving != nil || m.draft.Pending() { // what is written may be long: it is not put together for every key
		return nil
	}
	return m.draft.Changed(m.conv.ID, m.unsent())
}

// saveDraft is the command that saves what is written, and nil if it is saved.
func (m *model) saveDraft() tea.Cmd { return m.draft.Save(m, m.conv.ID, m.unsent()) }

// loadDraft brings back what was written in the conversation on the screen.
func (m *model) loadDraft() tea.Cmd {
	return m.draft.Load(m, func(text string) { m.offers.Restore(m.comp, text) })
}

// unsent is what was written and not taken by the conversation.
func (m *model) unsent() string {
	parts := m.Out.Unsent()
	if text := m.comp.Lasting(); strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}
