package dialog

import (
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// body is what is asked about. It is drawn once for a width, and scrolled.
type body struct {
	draw  func(width int) []string
	end   func(rest int, last string, width int) []string // what stands for the rest of what does not fit; may be nil
	width int                                             // of lines; 0 for not drawn
	lines []string
	top   int
	page  int // how many lines there was room for
	shown int // how many of them were the body's
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
	b.shown = min(max(height, 0), len(lines)-b.top)
	below := len(lines) - b.top - b.shown
	if b.end == nil || below == 0 || height < 2 {
		return lines[b.top : b.top+b.shown]
	}
	b.shown = max(b.shown-endLines, 0)
	rest := b.end(len(lines)-b.top-b.shown, lines[len(lines)-1], width)
	return append(slices.Clone(lines[b.top:b.top+b.shown]), rest...)
}

// endLines is how many lines stand for the rest.
const endLines = 2

// step is how far a page goes: no line is passed over.
func (b *body) step() int {
	if b.end == nil {
		return b.page
	}
	return max(b.page-endLines, 1)
}

func (b *body) scroll(n int) { b.top = max(min(b.top+n, len(b.lines)-b.page), 0) }

// key scrolls. It reports whether the key means that.
func (b *body) key(name string) bool {
	switch name {
	case "pgup", "ctrl+b":
		b.scroll(-b.step())
	case "pgdown", "ctrl+f", "space":
		b.scroll(b.step())
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
	b := body{draw: func(width int) []string {
		var lines []string
		switch {
		case a.Request.MCP != nil:
			lines = toolLines(t, a.Request, width)
		case len(a.Request.Command) > 0:
			lines = commandLines(t, a.Request.Command, width)
		}
		for _, c := range a.Changes {
			lines = append(lines, wrapped(t, theme.Bold, c.Line(a.Dir), width)...)
		}
		return withDiff(t, lines, a.Diff, width)
	}}
	if len(a.Request.Command) > 0 || a.Request.MCP != nil {
		// The user must know that there is more, and how it ends.
		b.end = func(rest int, last string, _ int) []string {
			return []string{t.Paint(theme.Warn, "… "+humanize.Count(rest, "more line")+"; the last one is:"), last}
		}
	}
	return b
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

// commandLines shows a command as it will run, all of it. Blank lines, which
// could hide what follows them, are counted instead.
func commandLines(t *theme.Theme, argv []string, width int) []string {
	var lines []string
	mark := t.Paint(theme.Accent, "$ ")
	for _, l := range safetext.Fold(transcript.CommandLine(argv), width-2) {
		switch {
		case l == "":
			lines = append(lines, "")
			continue
		case strings.HasPrefix(l, safetext.FoldMark):
			lines = append(lines, t.Paint(theme.Warn, "  "+l))
			continue
		}
		lines = append(lines, mark+t.Paint(theme.Code, l))
		mark = "  "
	}
	return lines
}

// toolLines shows a call of a tool of an MCP server: which server, which tool, and all
// of its arguments.
func toolLines(t *theme.Theme, r p.ApprovalRequested, width int) []string {
	lines := wrapped(t, theme.Bold, "server  "+r.MCP.Server, width)
	lines = append(lines, wrapped(t, theme.Bold, "tool    "+r.MCP.Name, width)...)
	for _, l := range draw.Arguments(string(r.Detail)) {
		for _, part := range safetext.Wrap(safetext.Show(l), max(width-2, 1)) {
			lines = append(lines, "  "+t.Paint(theme.Code, part))
		}
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
