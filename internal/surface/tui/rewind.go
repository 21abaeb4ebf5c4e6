package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/picker"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// escape is the second Esc when there is nothing else for it to do.
func (m *model) escape() tea.Cmd {
	if m.busy() || m.conv.id == "" || !m.comp.Empty() {
		return m.stop()
	}
	if !m.escaped {
		m.escaped = true
		return m.hintf(theme.Accent, "Esc again edits an earlier message")
	}
	m.escaped = false
	return m.rewind()
}

// rewind lets the person pick a message to go back to.
func (m *model) rewind() tea.Cmd {
	var rows []picker.Row
	texts := map[string]string{}
	for _, it := range slices.Backward(m.conv.tr.Items) {
		if it.Kind != transcript.User || !it.First {
			continue
		}
		id, files := fmt.Sprint(it.Turn), ""
		if c := m.conv.tr.ChangesOf(it.Turn); c.Changed() && !c.Undone {
			files = "changed files"
		}
		texts[id] = it.Text
		rows = append(rows, picker.Row{ID: id, Columns: []string{id, safetext.Line(it.Text), files}})
	}
	if len(rows) == 0 {
		return m.hintf(theme.Accent, "there is no message to go back to yet")
	}
	s := &pick{Model: picker.New(m.theme, picker.Options{
		Title:   "Edit which message? It and what came after it can be reverted",
		Columns: []picker.Column{{Title: "turn", Width: 5}, {Title: "message", Min: 20}, {Title: "", Width: 13, Drop: 1}},
	})}
	s.SetRows(rows)
	s.done = func(id string) tea.Cmd {
		n, _ := strconv.Atoi(id) // it is one of ours
		return m.planRewind(p.TurnID(n), texts[id])
	}
	m.screen = s
	return nil
}

// planRewind looks up what reverting turns would change.
func (m *model) planRewind(before p.TurnID, text string) tea.Cmd {
	ctx, undo, id := m.ctx, m.o.Undo, m.conv.id
	var turns []p.TurnID // that changed files, the last first
	for _, c := range slices.Backward(m.conv.tr.Changes) {
		if c.Turn >= before && c.Changed() && !c.Undone && undo != nil {
			turns = append(turns, c.Turn)
		}
	}
	return func() tea.Msg {
		var diff strings.Builder
		var notes []string
		for _, turn := range turns {
			u, err := undo(ctx, id, turn)
			if err != nil {
				notes = append(notes, fmt.Sprintf("turn %d: %s", turn, err))
				continue
			}
			diff.WriteString(u.Diff)
			notes = append(notes, u.Notes...)
		}
		return answer{func() tea.Cmd { return m.confirmRewind(id, before, text, turns, diff.String(), notes) }}
	}
}

func (m *model) confirmRewind(id p.ConversationID, before p.TurnID, text string, turns []p.TurnID, diff string, notes []string) tea.Cmd {
	if m.conv.id != id || m.busy() {
		return m.hintf(theme.Warn, "nothing was reverted: the conversation has continued")
	}
	c := dialog.Confirm{
		Title:   fmt.Sprintf("Go back to before turn %d?", before),
		Body:    []string{"The conversation as it is now stays, as a copy that /resume shows."},
		Choices: []dialog.Choice{{ID: "conversation", Key: "c", Label: "revert the conversation"}},
	}
	if len(turns) > 0 {
		c.Diff = diff
		c.Body = append(c.Body, "The files would change like this:")
		c.Choices = append(c.Choices,
			dialog.Choice{ID: "both", Key: "b", Label: "revert the conversation and the files"},
			dialog.Choice{ID: "files", Key: "f", Label: "revert the files only"})
	}
	c.Body = append(c.Body, slices.Compact(notes)...)
	c.Choices = append(c.Choices, dialog.Choice{ID: "", Key: "n", Label: "leave everything as it is"})
	m.dialog = &asking{Model: dialog.NewConfirm(m.theme, c), done: func(a dialog.Action) tea.Cmd {
		if a.Choice == "" {
			return m.hintf(theme.Accent, "nothing was reverted")
		}
		return m.doRewind(id, before, text, turns, a.Choice)
	}}
	return nil
}

// doRewind reverts what was chosen: first the copy is made, so that nothing can be lost.
func (m *model) doRewind(id p.ConversationID, before p.TurnID, text string, turns []p.TurnID, what string) tea.Cmd {
	ctx, e, undo := m.ctx, m.o.Engine, m.o.Undo
	return func() tea.Msg {
		err := func() error {
			if what != "files" {
				branch, err := e.Fork(ctx, id, 0)
				if err != nil {
					return err
				}
				if err := e.Release(ctx, branch); err != nil {
					return err
				}
			}
			if what != "conversation" {
				if err := undoAll(ctx, undo, id, turns); err != nil {
					return err
				}
			}
			if what == "files" {
				return nil
			}
			_, err := e.Submit(ctx, id, p.Revert{Before: before})
			return err
		}()
		return answer{func() tea.Cmd {
			if err != nil {
				return m.showError(err)
			}
			if what != "files" {
				m.returnText(text)
			}
			return m.hintf(theme.OK, "reverted: %s", map[string]string{"files": "the files", "both": "the conversation and the files", "conversation": "the conversation"}[what])
		}}
	}
}

// undoAll puts the files of turns back, the last turn first.
func undoAll(ctx context.Context, undo func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error), id p.ConversationID, turns []p.TurnID) error {
	for _, turn := range turns {
		u, err := undo(ctx, id, turn)
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
