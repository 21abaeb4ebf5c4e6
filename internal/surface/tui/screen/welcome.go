package screen

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Welcome says who we are, where, with what model, what it may do, and how to begin. No line is
// wider than width. place is the directory, in words.
func Welcome(s p.Settings, version, place string, width int, t *theme.Theme) []string {
	name := t.Paint(theme.Heading, "fermata") + " " + t.Paint(theme.Dim, version)
	lines := []string{
		"",
		t.Paint(theme.Accent, "╭───╮") + "  " + name,
		t.Paint(theme.Accent, "│ ") + t.Paint(theme.Heading, "●") + t.Paint(theme.Accent, " │") + "  " + place,
		"",
	}
	fact := func(name, text string) {
		lines = append(lines, t.Paint(theme.Dim, name)+strings.Repeat(" ", 8-len(name))+text)
	}
	if s.Model != "" {
		text := s.Model
		if s.Effort != "" {
			text += " " + s.Effort
		}
		fact("model", text+t.Paint(theme.Dim, " · "+s.Provider))
	}
	if s.Sandbox.Mode != "" { // else there are no settings yet
		fact("may", May(s.ForTurn())+t.Paint(theme.Dim, " · "+Asks(s.Approval)+" · /approvals"))
	}
	lines = append(lines, "", t.Paint(theme.Dim, "Try"))
	for _, text := range tries(s.Provider) {
		lines = append(lines, t.Paint(theme.Accent, "  › ")+text)
	}
	lines = append(lines, "",
		t.Paint(theme.Dim, "/resume an earlier conversation · ? for keys · / for commands"),
		t.Paint(theme.Dim, "Esc interrupts at any time; nothing is lost."),
	)
	for i, line := range lines {
		if line != "" {
			lines[i] = safetext.Fit(" "+line, width)
		}
	}
	return lines
}

// tries are three things to begin with.
func tries(provider string) []string {
	if provider == "demo" {
		return []string{"run: for i in 1 2 3 4 5; do echo $i; sleep 1; done", "plan: run: ls; write notes.txt: hello", "what happened?"}
	}
	return []string{"Explain how this repository is built and tested", "Find a bug, and fix it with a test", "/review"}
}
