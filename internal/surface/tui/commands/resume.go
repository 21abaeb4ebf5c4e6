package commands

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

// PickConversation lets the user choose a conversation to open. The list stays until another one takes its place;
// shown reports whether it is still there.
func (s Set) PickConversation(open func(p.ConversationID) tea.Cmd, shown func(*dialog.Picker) bool) tea.Cmd {
	o := dialog.PickerOptions{
		Title: "Conversations", Stays: true,
		Columns: []dialog.Column{
			{Title: "when", Width: 12},
			{Title: "ended", Width: 11, Drop: 2},
			{Title: "directory", Min: 12, Drop: 3},
			{Title: "title", Min: 20},
			{Title: "last line", Min: 20, Drop: 4},
		},
		Empty: "There are no conversations yet. Esc goes back.",
	}
	if s.Others != nil {
		o.Help, o.Tab = "tab other agents", func() tea.Cmd { return s.pickOther(open, shown) }
	}
	list := dialog.NewPicker(s.Theme(), o)
	list.SetLoading(true)
	s.Pick(list)
	choose := func(id p.ConversationID) tea.Cmd {
		list.SetNote("opening…")
		return open(id)
	}
	return s.listPage(list, engine.ListOptions{Limit: firstPage}, choose, shown)
}

// listPage fills the list with a page of conversations, and continues with the next.
func (s Set) listPage(list *dialog.Picker, o engine.ListOptions, choose func(p.ConversationID) tea.Cmd, shown func(*dialog.Picker) bool) tea.Cmd {
	ctx, e := s.Context(), s.Engine()
	return terminal.Do(func() func() tea.Cmd {
		page, err := e.List(ctx, o)
		return func() tea.Cmd {
			if !shown(list) {
				return nil
			}
			if err != nil {
				list.SetLoading(false)
				list.SetMissing(err.Error())
				return nil
			}
			if len(page.Unread) > 0 {
				list.SetMissing(strings.Join(page.Unread, "; "))
			}
			list.Append(s.conversationRows(page.Items, choose)...)
			if page.Next == "" {
				list.SetLoading(false)
				return nil
			}
			return s.listPage(list, engine.ListOptions{Limit: nextPages, Cursor: page.Next}, choose, shown)
		}
	})
}

func (s Set) conversationRows(list []engine.Summary, choose func(p.ConversationID) tea.Cmd) []dialog.Row {
	now := time.Now()
	current, _ := s.Conversation()
	var rows []dialog.Row
	for _, c := range list {
		if c.Turns == 0 && c.Unreadable == "" { // nothing happened in it
			continue
		}
		rows = append(rows, dialog.Row{
			ID: string(c.ID), Marked: c.ID == current, Choose: func() tea.Cmd { return choose(c.ID) },
			Columns: []string{screen.Ago(now, c.Updated), ending(c), s.ShortDir(c.Cwd), safetext.Line(c.Title), safetext.Line(c.LastLine)},
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
