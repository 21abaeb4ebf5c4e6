package draw

import (
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// runs is text in which each piece has its own look.
type runs struct {
	text  strings.Builder
	ends  []int // of the pieces
	roles [][]theme.Role
}

func (r *runs) add(s string, roles []theme.Role) {
	if s == "" {
		return
	}
	r.text.WriteString(s)
	r.ends = append(r.ends, r.text.Len())
	r.roles = append(r.roles, roles)
}

// paint paints the text from one offset to another.
func (r *runs) paint(from, to int, t *theme.Theme) string {
	var b strings.Builder
	text := r.text.String()
	for i := sort.SearchInts(r.ends, from+1); from < to && i < len(r.ends); i++ {
		end := min(to, r.ends[i])
		s := text[from:end]
		for k := len(r.roles[i]) - 1; k >= 0; k-- {
			s = t.Paint(r.roles[i][k], s)
		}
		b.WriteString(s)
		from = end
	}
	return b.String()
}

// wrap breaks the text into painted lines.
func (r *runs) wrap(width int, t *theme.Theme) []string {
	var lines []string
	for _, at := range safetext.Ranges(r.text.String(), width) {
		lines = append(lines, r.paint(at[0], at[1], t))
	}
	return lines
}

// and returns the roles with one more, for what is inside. Painting twice makes
// nothing brighter.
func and(roles []theme.Role, r theme.Role) []theme.Role {
	if slices.Contains(roles, r) {
		return roles
	}
	return append(roles[:len(roles):len(roles)], r)
}

// inlines collects the text in a node.
func (d *drawer) inlines(n ast.Node, roles []theme.Role) *runs {
	r := &runs{}
	d.inside(r, n, roles)
	return r
}

func (d *drawer) inside(r *runs, n ast.Node, roles []theme.Role) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		d.inline(r, c, roles)
	}
}

func (d *drawer) inline(r *runs, n ast.Node, roles []theme.Role) {
	switch n := n.(type) {
	case *ast.Text:
		d.plainText(r, n, roles)
	case *ast.String:
		r.add(safetext.Line(string(n.Value)), roles)
	case *ast.CodeSpan:
		d.codeSpan(r, n, roles)
	case *ast.Emphasis:
		role := theme.Italic
		if n.Level > 1 {
			role = theme.Bold
		}
		d.inside(r, n, and(roles, role))
	case *east.Strikethrough:
		d.inside(r, n, and(roles, theme.Strike))
	case *ast.Link:
		from := r.text.Len()
		d.inside(r, n, and(roles, theme.Link))
		d.address(r, r.text.String()[from:], n.Destination, roles)
	case *ast.Image:
		r.add("[image: ", roles)
		d.inside(r, n, roles)
		r.add("]", roles)
		d.address(r, "", n.Destination, roles)
	case *ast.AutoLink:
		r.add(safetext.Line(string(n.Label(d.src))), and(roles, theme.Link))
	case *ast.RawHTML:
		d.html(r, n, roles)
	case *east.TaskCheckBox: // it is the mark of its item
	default:
		d.inside(r, n, roles)
	}
}

func (d *drawer) plainText(r *runs, n *ast.Text, roles []theme.Role) {
	b := n.Segment.Value(d.src)
	if !n.IsRaw() {
		b = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(b)))
	}
	r.add(safetext.Line(string(b)), roles) // again: a reference may be to a control character
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.add("\n", roles)
	}
}

// codeSpan draws code within text. Without colours it keeps its backticks.
func (d *drawer) codeSpan(r *runs, n ast.Node, roles []theme.Role) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(d.src))
		}
	}
	s := safetext.Line(b.String())
	if !d.theme.Colored() {
		s = "`" + s + "`"
	}
	r.add(s, and(roles, theme.Code))
}

// address adds where a link goes to, unless its text says so.
func (d *drawer) address(r *runs, text string, to []byte, roles []theme.Role) {
	url := safetext.Line(string(to))
	if url == "" || url == text || url == "mailto:"+text {
		return
	}
	r.add(" ("+url+")", and(roles, theme.Dim))
}

func (d *drawer) html(r *runs, n *ast.RawHTML, roles []theme.Role) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		at := n.Segments.At(i)
		b.Write(at.Value(d.src))
	}
	switch s := b.String(); strings.ToLower(s) {
	case "<br>", "<br/>", "<br />":
		r.add("\n", roles)
	default:
		r.add(safetext.Line(s), and(roles, theme.Dim))
	}
}
