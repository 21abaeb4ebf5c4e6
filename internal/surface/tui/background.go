package tui

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// kill stops a background command.
func (m *model) kill(args string) tea.Cmd {
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 {
		return m.Hint(theme.Warn, "/kill N: N is the number that /ps shows")
	}
	op := client.NewOp(p.KillBackground{ID: p.BackgroundID(n)})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if err != nil {
			return m.ShowError(err)
		}
		return m.Hint(theme.OK, "background command %d is being stopped", n)
	}
	return m.send(op)
}
