package commands

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// UndoTurn shows what restoring a turn's files would do, and asks. A zero turn is the last that changed any.
func (r Rewinder) UndoTurn(turn p.TurnID) tea.Cmd {
	if r.Undo == nil {
		return r.ShowError(errors.New("undo is not available here"))
	}
	ctx := r.Context()
	id, _ := r.Conversation()
	return terminal.Do(func() func() tea.Cmd {
		u, err := r.Undo(ctx, id, turn)
		return func() tea.Cmd {
			if err != nil {
				return r.ShowError(err)
			}
			return r.confirmUndo(id, u)
		}
	})
}

func (r Rewinder) confirmUndo(id p.ConversationID, u *app.Undo) tea.Cmd {
	if r.continued(id) {
		return r.Hint(theme.Warn, "nothing was undone: the conversation has continued")
	}
	if u.Files == 0 {
		return r.Hint(theme.Accent, "nothing to do: the files are as they were before turn %d", u.Turn)
	}
	ctx := r.Context()
	r.Ask(dialog.Confirm{
		Title: fmt.Sprintf("Restore %s to the state before turn %d?", screen.Count(u.Files, "file"), u.Turn),
		Body:  u.Notes, Diff: u.Diff, Default: 1,
		Choices: []dialog.Choice{{ID: "yes", Key: "y", Label: "restore them"}, {ID: "no", Key: "n", Label: "leave them"}},
	}, func(choice string) tea.Cmd {
		if choice != "yes" {
			return r.Hint(theme.Accent, "nothing was undone")
		}
		return terminal.Do(func() func() tea.Cmd {
			err := u.Do(ctx)
			return func() tea.Cmd {
				if err != nil {
					return r.ShowError(err)
				}
				return r.Hint(theme.OK, "turn %d was undone", u.Turn)
			}
		})
	})
	return nil
}
