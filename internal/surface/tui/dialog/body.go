package dialog

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// body is what is asked about. It is drawn once for a width, and scrolled.
type body struct {
	draw  func(width int) []string
	width int // of lines; 0 for not drawn
	lines []string
	top   int
	page  int // how many lines were seen
}

// at returns the lines for a width.
func (b *body) at(width int) []string {
	if b.width != width {
		b.lines, b.width = b.draw(width), width
	}
	return b.lines
}

// window returns the lines to show in a height.
func (b *body) window(width, height int) []string {
	lines := b.at(width)
	b.page = max(height, 1)
	b.scroll(0)
	return lines[b.top:min(b.top+max(height, 0), len(lines))]
}

func (b *body) scroll(n int) { b.top = max(min(b.top+n, len(b.lines)-b.page), 0) }

// key scrolls. It reports whether the key means that.
func (b *body) key(name string) bool {
	switch name {
	case "pgup", "ctrl+b":
		b.scroll(-b.page)
	case "pgdown", "ctrl+f", "space":
		b.scroll(b.page)
	case "k", "shift+up":
		b.scroll(-1)
	case "j", "shift+down":
		b.scroll(1)
	case "home", "g":
		b.scroll(-len(b.lines))
	case "end", "shift+g":
		b.scroll(len(b.lines))
	default:
		return false
	}
	return true
}

func approvalBody(t *theme.Theme, a Approval) body {
	return body{draw: func(width int) []string {
		var lines []string
		if len(a.Request.Command) > 0 {
			lines = commandLines(t, a.Request.Command, width)
		}
		for _, c := range a.Changes {
			lines = append(lines, wrapped(t, theme.Bold, c.Line(a.Dir), width)...)
		}
		return withDiff(t, lines, a.Diff, width)
	}}
}

func confirmBody(t *theme.Theme, c Confirm) body {
	return body{draw: func(width int) []string {
		var lines []string
		for _, s := range c.Body {
			lines = append(lines, wrapped(t, theme.Text, s, width)...)
		}
		return withDiff(t, lines, c.Diff, width)
	}}
}

func wrapped(t *theme.Theme, r theme.Role, s string, width int) []string {
	lines := safetext.Wrap(safetext.Show(s), width)
	for i := range lines {
		lines[i] = t.Paint(r, lines[i])
	}
	return lines
}

// commandLines shows a command as it will run, all of it.
func commandLines(t *theme.Theme, argv []string, width int) []string {
	var lines []string
	mark := t.Paint(theme.Accent, "$ ")
	for _, l := range safetext.Wrap(safetext.Show(transcript.CommandLine(argv)), max(width-2, 1)) {
		lines = append(lines, mark+t.Paint(theme.Code, l))
		mark = "  "
	}
	return lines
}

// withDiff adds a diff below some lines.
func withDiff(t *theme.Theme, lines []string, diff string, width int) []string {
	diff = strings.TrimRight(diff, "\n")
	if diff == "" {
		return lines
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	for _, l := range strings.Split(safetext.Show(diff), "\n") {
		role := diffRole(l)
		for _, r := range safetext.Hard(l, width) {
			lines = append(lines, t.Paint(role, l[r[0]:r[1]]))
		}
	}
	return lines
}

func diffRole(line string) theme.Role {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "):
		return theme.Bold
	case strings.HasPrefix(line, "@@"):
		return theme.Accent
	case strings.HasPrefix(line, "+"):
		return theme.Added
	case strings.HasPrefix(line, "-"):
		return theme.Removed
	}
	return theme.Text
}
