package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
)

// outlives reports whether another process runs the conversation on the screen, so that
// what goes on in it does not end with us.
func (m *model) outlives() bool {
	return m.o.Outlives != nil && m.talk.id != "" && m.o.Outlives(m.talk.id)
}

// askToDetach asks what becomes of a turn that another process runs.
func (m *model) askToDetach() tea.Cmd {
	id, turn := m.talk.id, m.talk.tr.Turn
	m.screen = nil
	m.dialog = &asking{
		Model: dialog.NewConfirm(m.theme, dialog.Confirm{
			Title: fmt.Sprintf("Turn %d has not ended", turn),
			Body:  []string{"Another process runs it, so it can go on without this terminal:", "fermata attach " + string(id)},
			Choices: []dialog.Choice{
				{ID: "leave", Key: "l", Label: "leave it running, and quit"},
				{ID: "stop", Key: "s", Label: "stop it, and quit"},
				{ID: "stay", Key: "n", Label: "stay"},
			},
		}),
		done: func(a dialog.Action) tea.Cmd {
			ctx, e := m.ctx, m.o.Engine
			return map[string]tea.Cmd{"leave": func() tea.Msg { return leave{} }, "stop": func() tea.Msg {
				follow.EndTurn(ctx, e, id, turn, shutdownBound)
				return leave{}
			}}[a.Choice]
		},
	}
	return nil
}
