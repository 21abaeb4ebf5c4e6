package commands

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// UndoTurn shows what restoring the files of a turn would do, and asks. Without a number it is the last turn that changed any.
func (s Set) UndoTurn(arg string) tea.Cmd {
	var turn p.TurnID
	if arg != "" {
		var cmd tea.Cmd
		if turn, cmd = s.turn("/undo-turn N", arg); cmd != nil {
			return cmd
		}
	}
	if cmd := s.needConversation(); cmd != nil {
		return cmd
	}
	return s.IfIdle(func() tea.Cmd { return s.previewUndo(turn) })
}

func (s Set) previewUndo(turn p.TurnID) tea.Cmd {
	if s.Environment.Undo == nil {
		return s.ShowError(errors.New("undo is not available here"))
	}
	ctx := s.Context()
	id, _ := s.Conversation()
	return terminal.Do(func() func() tea.Cmd {
		u, err := s.Environment.Undo(ctx, id, turn)
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			return s.confirmUndo(id, u)
		}
	})
}

func (s Set) confirmUndo(id p.ConversationID, u *app.Undo) tea.Cmd {
	if s.continued(id) {
		return s.Hint(theme.Warn, "nothing was undone: the conversation has continued")
	}
	if u.Files == 0 {
		return s.Hint(theme.Accent, "nothing to do: the files are as they were before turn %d", u.Turn)
	}
	ctx := s.Context()
	s.Ask(dialog.Confirm{
		Title: fmt.Sprintf("Restore %s to the state before turn %d?", humanize.Count(u.Files, "file"), u.Turn),
		Body:  u.Notes, Diff: u.Diff, Default: 1,
		Choices: []dialog.Choice{{ID: "yes", Key: "y", Label: "restore them"}, {ID: "no", Key: "n", Label: "leave them"}},
	}, func(choice string) tea.Cmd {
		if choice != "yes" {
			return s.Hint(theme.Accent, "nothing was undone")
		}
		return terminal.Do(func() func() tea.Cmd {
			err := u.Do(ctx)
			return func() tea.Cmd {
				if err != nil {
					return s.ShowError(err)
				}
				return s.Hint(theme.OK, "turn %d was undone", u.Turn)
			}
		})
	})
	return nil
}
