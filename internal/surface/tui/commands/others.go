package commands

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Others are the conversations that other agents had in a project.
type Others interface {
	List(ctx context.Context, dir string) (list []imports.Found, unread []string, err error)
	Import(ctx context.Context, s foreign.Session) (p.ConversationID, error)
}

// pickOther lets the user choose a conversation of another agent, which is imported and opened. open and shown are those of
// [Set.PickConversation].
func (s Set) pickOther(open func(p.ConversationID) tea.Cmd, shown func(*dialog.Picker) bool) tea.Cmd {
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{
		Title: "Conversations of other agents in this project", Stays: true,
		Columns: []dialog.Column{
			{Title: "when", Width: 12},
			{Title: "agent", Width: 11},
			{Title: "state", Width: 9, Drop: 2},
			{Title: "title", Min: 20},
		},
		Empty: "Codex, Claude Code, opencode and Gemini CLI have none here. Esc goes back.",
		Help:  "tab own conversations",
		Tab:   func() tea.Cmd { return s.PickConversation(open, shown) },
	})
	list.SetLoading(true)
	s.Pick(list)
	ctx, dir := s.Context(), s.Settings().Cwd
	return terminal.Do(func() func() tea.Cmd {
		found, unread, err := s.Others.List(ctx, dir)
		if err != nil {
			unread = append(unread, err.Error())
		}
		return func() tea.Cmd {
			now := time.Now()
			for _, f := range found {
				list.Append(dialog.Row{
					ID: string(f.Agent) + " " + f.ID, Choose: func() tea.Cmd { return s.importOther(list, f.Session, open, shown) },
					Columns: []string{screen.Ago(now, f.Modified), f.Agent.String(), string(f.State), safetext.Line(f.Title)},
				})
			}
			list.SetLoading(false)
			list.SetMissing(safetext.Line(strings.Join(unread, "; ")))
			return nil
		}
	})
}

// importOther imports a conversation, and opens what it has become.
func (s Set) importOther(list *dialog.Picker, session foreign.Session, open func(p.ConversationID) tea.Cmd, shown func(*dialog.Picker) bool) tea.Cmd {
	list.SetNote("importing…")
	ctx := s.Context()
	return terminal.Do(func() func() tea.Cmd {
		id, err := s.Others.Import(ctx, session)
		return func() tea.Cmd {
			switch {
			case err != nil:
				list.SetNote(safetext.Line("not imported: " + err.Error()))
				return nil
			case !shown(list): // the user went elsewhere; it is in the list from now on
				return nil
			}
			return open(id)
		}
	})
}
