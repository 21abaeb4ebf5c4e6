package tui

import (
	"cmp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	p "github.com/fermata-agent/fermata/protocol"
)

// The first page is a screenful and is there at once; the others follow.
const (
	firstPage = 50
	nextPages = 1000
)

// pickConversation lets the person choose a conversation.
func (m *model) pickConversation() tea.Cmd {
	s := &pick{resuming: true, Picker: dialog.NewPicker(m.theme, dialog.PickerOptions{
		Title: "Conversations",
		Columns: []dialog.Column{
			{Title: "when", Width: 12},
			{Title: "ended", Width: 11, Drop: 2},
			{Title: "directory", Min: 12, Drop: 3},
			{Title: "title", Min: 20},
			{Title: "last line", Min: 20, Drop: 4},
		},
		Empty: "There are no conversations yet. Esc goes back.",
	})}
	s.done = func(id string) tea.Cmd {
		s.SetNote("opening…")
		return m.open(p.ConversationID(id))
	}
	s.SetLoading(true)
	m.screen = s
	return m.listPage(s, engine.ListOptions{Limit: firstPage})
}

// listPage gives the picker a page of conversations, and continues with the next.
func (m *model) listPage(s *pick, o engine.ListOptions) tea.Cmd {
	ctx, e := m.ctx, m.o.Engine
	return func() tea.Msg {
		page, err := e.List(ctx, o)
		return terminal.Done{Then: func() tea.Cmd {
			if m.screen != overlay(s) {
				return nil
			}
			if err != nil {
				s.SetLoading(false)
				s.SetMissing(err.Error())
				return nil
			}
			if len(page.Unread) > 0 {
				s.SetMissing(strings.Join(page.Unread, "; "))
			}
			s.Append(m.rows(page.Items)...)
			if page.Next == "" {
				s.SetLoading(false)
				return nil
			}
			return m.listPage(s, engine.ListOptions{Limit: nextPages, Cursor: page.Next})
		}}
	}
}

func (m *model) rows(list []engine.Summary) []dialog.Row {
	now := time.Now()
	var rows []dialog.Row
	for _, c := range list {
		if c.Turns == 0 && c.Unreadable == "" { // nothing happened in it
			continue
		}
		rows = append(rows, dialog.Row{
			ID: string(c.ID), Marked: c.ID == m.conv.id,
			Columns: []string{screen.Ago(now, c.Updated), ending(c), m.ShortDir(c.Cwd), safetext.Line(c.Title), safetext.Line(c.LastLine)},
		})
	}
	return rows
}

// ending says how the last turn ended.
func ending(c engine.Summary) string {
	if c.Unreadable != "" {
		return "unreadable"
	}
	return string(cmp.Or(c.Ended, "open"))
}
