package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// jobLine is a background command in one line.
func jobLine(b p.BackgroundStarted) string {
	it := transcript.Item{Command: b.Command}
	return fmt.Sprintf("%d  %s", b.ID, safetext.Line(it.CommandLine()))
}

// ps lists the commands that run on beside the turns.
func (m *model) ps(string) tea.Cmd {
	list := m.conv.tr.Running
	if len(list) == 0 {
		return m.hintf(theme.Accent, "no background commands are running")
	}
	var b strings.Builder
	for _, job := range list {
		fmt.Fprintln(&b, jobLine(job))
	}
	m.page("Background commands; /kill N stops one", b.String())
	return nil
}

func (m *model) kill(args string) tea.Cmd {
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 {
		return m.hintf(theme.Warn, "/kill N: N is the number that /ps shows")
	}
	e := say(p.KillBackground{ID: p.BackgroundID(n)})
	e.then = func(_ p.Receipt, err error) tea.Cmd {
		if err != nil {
			return m.showError(err)
		}
		return m.hintf(theme.OK, "background command %d is being stopped", n)
	}
	return m.send(e)
}
