package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A point is a message to go back to.
type point struct {
	conversation p.ConversationID
	before       p.TurnID   // that it began
	text         string     // of the message
	turns        []p.TurnID // that changed files from there on, the last first
}

// Rewind lets the user pick a message to go back to.
func (s Set) Rewind() tea.Cmd {
	_, tr := s.Conversation()
	var rows []dialog.Row
	for _, it := range slices.Backward(tr.Items) {
		if it.Kind != transcript.User || !it.First {
			continue
		}
		id, files := fmt.Sprint(it.Turn), ""
		if c := tr.ChangesOf(it.Turn); c.Changed() && !c.Undone {
			files = "changed files"
		}
		rows = append(rows, dialog.Row{
			ID: id, Columns: []string{id, safetext.Line(it.Text), files},
			Choose: func() tea.Cmd { return s.previewRewind(it.Turn, it.Text) },
		})
	}
	if len(rows) == 0 {
		return s.Hint(theme.Accent, "there is no message to go back to yet")
	}
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{
		Title:   "Edit which message? It and what came after it can be reverted",
		Columns: []dialog.Column{{Title: "turn", Width: 5}, {Title: "message", Min: 20}, {Title: "", Width: 13, Drop: 1}},
	})
	list.SetRows(rows)
	s.Pick(list)
	return nil
}

// previewRewind looks up what reverting turns would change.
func (s Set) previewRewind(before p.TurnID, text string) tea.Cmd {
	id, tr := s.Conversation()
	to := point{conversation: id, before: before, text: text}
	for _, c := range slices.Backward(tr.Changes) {
		if c.Turn >= before && c.Changed() && !c.Undone && s.Environment.Undo != nil {
			to.turns = append(to.turns, c.Turn)
		}
	}
	ctx := s.Context()
	return terminal.Do(func() func() tea.Cmd {
		var diff strings.Builder
		var notes []string
		for _, turn := range to.turns {
			u, err := s.Environment.Undo(ctx, id, turn)
			if err != nil {
				notes = append(notes, fmt.Sprintf("turn %d: %s", turn, err))
				continue
			}
			diff.WriteString(u.Diff)
			notes = append(notes, u.Notes...)
		}
		return func() tea.Cmd { return s.confirmRewind(to, diff.String(), notes) }
	})
}

// continued reports whether more has happened in the conversation, or another one is on the screen.
func (s Set) continued(since p.ConversationID) bool {
	id, _ := s.Conversation()
	return id != since || s.Busy()
}

func (s Set) confirmRewind(to point, diff string, notes []string) tea.Cmd {
	if s.continued(to.conversation) {
		return s.Hint(theme.Warn, "nothing was reverted: the conversation has continued")
	}
	c := dialog.Confirm{
		Title:   fmt.Sprintf("Go back to before turn %d?", to.before),
		Body:    []string{"The conversation as it is now stays, as a copy that /resume shows."},
		Choices: []dialog.Choice{{ID: "conversation", Key: "c", Label: "revert the conversation"}},
	}
	if len(to.turns) > 0 {
		c.Diff = diff
		c.Body = append(c.Body, "The files would change like this:")
		c.Choices = append(c.Choices,
			dialog.Choice{ID: "both", Key: "b", Label: "revert the conversation and the files"},
			dialog.Choice{ID: "files", Key: "f", Label: "revert the files only"})
	}
	c.Body = append(c.Body, slices.Compact(notes)...)
	c.Choices = append(c.Choices, dialog.Choice{ID: "", Key: "n", Label: "leave everything as it is"})
	s.Ask(c, func(choice string) tea.Cmd {
		if choice == "" {
			return s.Hint(theme.Accent, "nothing was reverted")
		}
		return s.rewind(to, choice)
	})
	return nil
}

// rewind reverts what was chosen.
func (s Set) rewind(to point, what string) tea.Cmd {
	ctx, e := s.Context(), s.Engine()
	return terminal.Do(func() func() tea.Cmd {
		err := func() error {
			if what != "files" { // first the copy is made, so that nothing can be lost
				branch, err := e.Fork(ctx, to.conversation, 0)
				if err != nil {
					return err
				}
				if err := e.Release(ctx, branch); err != nil {
					return err
				}
			}
			if what != "conversation" {
				if err := s.undoAll(ctx, to); err != nil {
					return err
				}
			}
			if what == "files" {
				return nil
			}
			_, err := e.Submit(ctx, to.conversation, p.Revert{Before: to.before})
			return err
		}()
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			if what != "files" {
				s.Return(to.text)
			}
			return s.Hint(theme.OK, "reverted: %s", map[string]string{"files": "the files", "both": "the conversation and the files", "conversation": "the conversation"}[what])
		}
	})
}

// undoAll restores the files of turns, the last turn first.
func (s Set) undoAll(ctx context.Context, to point) error {
	for _, turn := range to.turns {
		u, err := s.Environment.Undo(ctx, to.conversation, turn)
		if err != nil {
			return err
		}
		if u.Files > 0 {
			if err := u.Do(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
