package draw

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/fermata-agent/fermata/internal/markup"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A drawer draws the nodes of one block.
type drawer struct {
	src   []byte
	theme *theme.Theme
}

func drawBlock(src string, width int, t *theme.Theme) []string {
	d := &drawer{src: []byte(src), theme: t}
	return d.blocks(markup.Parser().Parse(text.NewReader(d.src)), width, nil)
}

// blocks draws the blocks in a node one below the other, with an empty line
// between where the text has one.
func (d *drawer) blocks(n ast.Node, width int, roles []theme.Role) []string {
	var out []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := d.block(c, width, roles)
		if len(lines) == 0 {
			continue
		}
		if len(out) > 0 && c.Type() == ast.TypeBlock && c.HasBlankPreviousLines() {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (d *drawer) block(n ast.Node, width int, roles []theme.Role) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return d.inlines(n, and(roles, theme.Heading)).wrap(width, d.theme)
	case *ast.ThematicBreak:
		return []string{d.theme.Paint(theme.Border, strings.Repeat("─", width))}
	case *ast.FencedCodeBlock:
		return d.code(n, string(n.Language(d.src)), width)
	case *ast.CodeBlock:
		return d.code(n, "", width)
	case *ast.Blockquote:
		return d.quote(n, width, roles)
	case *ast.List:
		return d.list(n, width, roles)
	case *ast.HTMLBlock:
		return d.htmlBlock(n, width, roles)
	case *ast.LinkReferenceDefinition:
		return nil
	case *east.Table:
		return d.table(n, width, roles)
	case *ast.Paragraph, *ast.TextBlock:
		return d.inlines(n, roles).wrap(width, d.theme)
	}
	return d.blocks(n, width, roles)
}

// narrow is the width below which nothing is indented any more.
const narrow = 12

// indented draws the blocks in a node behind a first and other leads, which are
// equally wide.
func (d *drawer) indented(n ast.Node, width int, roles []theme.Role, first, other string) []string {
	w := safetext.Width(first)
	if width-w < narrow {
		return d.blocks(n, width, roles)
	}
	lines := d.blocks(n, width-w, roles)
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, l := range lines {
		switch {
		case i == 0:
			lines[i] = first + l
		case l == "":
			lines[i] = strings.TrimRight(other, " ")
		default:
			lines[i] = other + l
		}
	}
	return lines
}

func (d *drawer) quote(n ast.Node, width int, roles []theme.Role) []string {
	bar := d.theme.Paint(theme.Border, "│") + " "
	return d.indented(n, width, and(roles, theme.Quote), bar, bar)
}

func (d *drawer) list(n *ast.List, width int, roles []theme.Role) []string {
	var out []string
	number := n.Start
	last := fmt.Sprint(n.Start + n.ChildCount() - 1)
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%*d. ", len(last), number)
			number++
		}
		if box := taskBox(c); box != "" {
			mark = box
		}
		if len(out) > 0 && c.HasBlankPreviousLines() {
			out = append(out, "")
		}
		other := strings.Repeat(" ", safetext.Width(mark))
		out = append(out, d.indented(c, width, roles, d.theme.Paint(theme.Accent, mark), other)...)
	}
	return out
}

// taskBox is the mark of an item that can be ticked off.
func taskBox(item ast.Node) string {
	if item.FirstChild() == nil {
		return ""
	}
	switch box, ok := item.FirstChild().FirstChild().(*east.TaskCheckBox); {
	case !ok:
		return ""
	case box.IsChecked:
		return "☑ "
	}
	return "☐ "
}

func (d *drawer) code(n ast.Node, lang string, width int) []string {
	var out []string
	code := markup.NewHighlighter(lang)
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		line := strings.TrimRight(string(at.Value(d.src)), "\n")
		out = append(out, drawCode(line, &code, width, d.theme)...)
	}
	return out
}

// drawCode draws one line of code.
func drawCode(line string, h *markup.Highlighter, width int, t *theme.Theme) []string {
	const lead = "  "
	r := codeLine(h, line)
	var out []string
	for _, at := range safetext.Hard(line, width-len(lead)) {
		out = append(out, strings.TrimRight(lead+r.paint(at[0], at[1], t), " "))
	}
	return out
}

func (d *drawer) htmlBlock(n *ast.HTMLBlock, width int, roles []theme.Role) []string {
	r := &runs{}
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		r.add(string(at.Value(d.src)), and(roles, theme.Dim))
	}
	if n.HasClosure() {
		r.add(string(n.ClosureLine.Value(d.src)), and(roles, theme.Dim))
	}
	lines := r.wrap(width, d.theme)
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
