package composer

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

const (
	prompt   = "› "
	minBoxed = 20 // narrower than this, or lower than three lines, there is no border
)

// View returns the box, at most maxHeight lines (at least one) of at most width
// columns, and where the cursor is in it: nil without the focus.
func (c *Composer) View(width, maxHeight int) ([]string, *tea.Cursor) {
	boxed := width >= minBoxed && maxHeight >= 3
	left, frame := 2, 2 // columns of the prompt and of what is around the text
	rows := max(maxHeight, 1)
	if boxed {
		left, frame = 4, 5
		rows -= 2
	}
	b := &c.buf
	if c.search != nil {
		b = &c.search.found
	}
	c.buf.SetWidth(width - frame)
	b.SetWidth(width - frame)
	f := b.View(rows, func(label string) string { return c.theme.Paint(theme.Accent, label) })
	if b.Empty() && c.search == nil {
		role := theme.Dim
		if !c.theme.Colored() {
			role = theme.Italic // it must not look like something that was written
		}
		f.Rows[0] = c.theme.Paint(role, safetext.Cut(c.opts.Placeholder, max(width-frame, 0)))
	}

	lines := make([]string, 0, len(f.Rows)+2)
	for i, r := range f.Rows {
		lines = append(lines, c.prompt(i == 0 && !f.Above)+r)
	}
	y := f.Y
	if boxed {
		lines = c.box(lines, f, width)
		y++
	}
	for i := range lines {
		if safetext.Width(lines[i]) > width { // too narrow to read
			lines[i] = safetext.Fit(lines[i], max(width, 0))
		}
	}
	if !c.focused {
		return lines, nil
	}
	return lines, tea.NewCursor(min(left+f.X, max(width-1, 0)), y)
}

// prompt is what stands before a row of the text.
func (c *Composer) prompt(first bool) string {
	switch {
	case !first:
		return strings.Repeat(" ", safetext.Width(prompt))
	case c.search != nil:
		return c.theme.Paint(theme.Dim, prompt)
	case strings.HasPrefix(c.buf.Line(0), "!"):
		return c.theme.Paint(theme.Warn, prompt)
	}
	return c.theme.Paint(theme.Accent, prompt)
}

// box draws the border, with a hint in its lower edge.
func (c *Composer) box(rows []string, f edit.Frame, width int) []string {
	side := c.theme.Paint(theme.Border, "│")
	lines := make([]string, 0, len(rows)+2)
	lines = append(lines, c.edge("╭", "╮", c.theme.Paint(theme.Warn, safetext.Cut(c.label, max(width-16, 0))), more(f.Above, "↑ more"), width))
	for _, r := range rows {
		pad := max(width-3-safetext.Width(r), 0)
		lines = append(lines, side+" "+r+strings.Repeat(" ", pad)+side)
	}
	below := more(f.Below, "↓ more")
	return append(lines, c.edge("╰", "╯", c.hint(width-8-safetext.Width(below)), below, width))
}

func more(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// edge draws one horizontal line of the border with words at its left and right.
func (c *Composer) edge(from, to, left, right string, width int) string {
	room := width - 4 // corners, and a dash beside each
	if right != "" {
		right = " " + right + " "
		room -= safetext.Width(right)
	}
	if left != "" {
		left = " " + safetext.Cut(left, max(room-2, 0)) + " "
		room -= safetext.Width(left)
	}
	line := func(s string) string { return c.theme.Paint(theme.Border, s) }
	words := func(s string) string { return c.theme.Paint(theme.Dim, s) }
	return line(from+"─") + words(left) + line(strings.Repeat("─", max(room, 0))) + words(right) + line("─"+to)
}

// hint says what the keys do just now, as much of it as there is room for.
func (c *Composer) hint(room int) string {
	var long, short string
	switch {
	case c.search != nil:
		long, short = c.search.hint()
	case strings.HasPrefix(c.buf.Line(0), "!"):
		long, short = "enter runs the command outside the sandbox · the model sees its output", "enter runs it outside the sandbox"
	case c.busy:
		long, short = "enter steer · tab queue · ctrl-s replace", "⏎ steer · tab queue · ^S replace"
	case c.buf.Lines() > 1:
		long, short = "enter send · ctrl-j newline", "⏎ send · ^J newline"
	}
	if c.opts.Vim && c.search == nil {
		mode := "insert"
		if c.vim.Normal {
			mode = "normal"
		}
		long, short = strings.TrimSuffix(mode+" · "+long, " · "), strings.TrimSuffix(mode+" · "+short, " · ")
	}
	if safetext.Width(long) <= room {
		return long
	}
	return short
}

func (s *search) hint() (long, short string) {
	switch {
	case s.query == "":
		return "search: type a word · esc back", "search:"
	case len(s.matches) == 0:
		short = fmt.Sprintf("search: %s · nothing found", s.query)
		return short + " · esc back", short
	}
	short = fmt.Sprintf("search: %s · %d of %d", s.query, s.nth+1, len(s.matches))
	return short + " · ctrl-r older · enter select", short
}

// Popup returns the completion popup, to be drawn above the box; nil if it is
// closed. It has at most eight lines.
func (c *Composer) Popup(width int) []string { return c.PopupIn(width, popupLines) }

// PopupIn is Popup with at most height lines, the selected one among them.
func (c *Composer) PopupIn(width, height int) []string {
	u := &c.popup
	height = min(height, popupLines)
	if !u.open() || height <= 0 {
		return nil
	}
	if len(u.list) == 0 {
		return []string{c.theme.Paint(theme.Dim, safetext.Fit("  looking for files…", max(width, 0)))}
	}
	rows := draw.List{At: u.rows.At} // the selected one is the last, if it is not among the first
	first, end := rows.Window(height, len(u.list))
	shown := u.list[first:end]
	column := 0
	for _, pr := range shown {
		column = max(column, safetext.Width(pr.title(u.token.kind)))
	}
	lines := make([]string, 0, len(shown))
	for i, pr := range shown {
		lines = append(lines, c.proposal(pr, first+i == u.rows.At, column, width))
	}
	return lines
}

func (pr proposal) title(kind byte) string {
	if kind == '@' {
		return pr.name
	}
	return strings.TrimSpace("/" + pr.name + " " + pr.args)
}

// proposal draws one line of the popup. Of a path that is too long its end is seen.
func (c *Composer) proposal(pr proposal, selected bool, column, width int) string {
	mark := "  "
	if selected {
		mark = "› "
	}
	title := pr.title(c.popup.token.kind)
	room := max(width-2, 0)
	if over := safetext.Width(title) - room; over > 0 && c.popup.token.kind == '@' {
		title = ansi.TruncateLeft(title, over+1, "…")
	}
	text := mark + safetext.Cut(title, room)
	help := ""
	if pr.help != "" {
		help = strings.Repeat(" ", max(column-safetext.Width(title), 0)+2) + pr.help
		help = safetext.Cut(help, max(width-safetext.Width(text), 0))
	}
	if selected {
		return draw.SelectedRow(text+help, width, c.theme)
	}
	return safetext.Fit(text+c.theme.Paint(theme.Dim, help), max(width, 0))
}
