package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	p "github.com/fermata-agent/fermata/protocol"
)

// owner is the other process that runs the conversation on the screen, so that
// what goes on in it does not end with us.
func (m *model) owner() (app.Owner, bool) {
	if m.o.RunBy == nil || m.conv.id == "" {
		return app.Owner{}, false
	}
	o := m.o.RunBy(m.conv.id)
	return o, o.PID != 0
}

// runs reports whether this process runs a turn that quitting stops. One that waits for a person or
// a limit waits on.
func (m *model) runs() bool {
	_, elsewhere := m.owner()
	tr := m.conv.tr
	return tr.Active && !elsewhere && !m.stopping() && len(m.conv.asks) == 0 && tr.Hold == nil
}

// askToDetach asks what becomes of a turn that another process runs.
func (m *model) askToDetach(o app.Owner) tea.Cmd {
	id, turn := m.conv.id, m.conv.tr.Turn
	body := []string{"Another process runs it, so it can continue without this terminal:", "fermata attach " + string(id)}
	quit := dialog.Choice{ID: "leave", Key: "l", Label: "leave it running, and quit"}
	if !o.Serves {
		body = []string{fmt.Sprintf("Process %d runs it, and stops it when that one quits.", o.PID)}
		quit = dialog.Choice{ID: "leave", Key: "q", Label: "quit only this terminal"}
	}
	m.screen = nil
	m.dialog = &asking{
		turn: turn,
		Dialog: dialog.NewConfirm(m.theme, dialog.Confirm{
			Title: fmt.Sprintf("Turn %d has not ended", turn), Body: body,
			Choices: []dialog.Choice{quit, {ID: "stop", Key: "s", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
		}),
		done: func(a dialog.Answer) tea.Cmd {
			ctx, e := m.ctx, m.o.Engine
			return map[string]tea.Cmd{"leave": func() tea.Msg { return leave{} }, "stop": func() tea.Msg {
				follow.EndTurn(ctx, e, id, turn, shutdownBound)
				return leave{}
			}}[a.Choice]
		},
	}
	return nil
}

// moved says that another process has the conversation open than before.
type moved struct {
	id p.ConversationID
	app.Move
}

func (m *model) onMoved(msg moved) {
	if msg.id != m.conv.id {
		return
	}
	how, who := "has quit", "this terminal has"
	if msg.Died {
		how = "ended unexpectedly"
	}
	if msg.To != 0 {
		who = fmt.Sprintf("process %d has", msg.To)
	}
	m.note(msg.Died, "process %d %s; %s taken over", msg.From, how, who)
}
