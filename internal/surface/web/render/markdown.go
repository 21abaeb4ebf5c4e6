package render

import (
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/fermata-agent/fermata/internal/markup"
	"github.com/fermata-agent/fermata/internal/safetext"
)

// Markdown makes HTML of Markdown. HTML in it is shown as text. Line breaks within a paragraph are
// kept, as people expect who write to each other.
func Markdown(src string) string {
	h := &builder{}
	h.markdown(src)
	return h.String()
}

// Limits of what is drawn as Markdown: a page shall not hang because a model repeats itself.
const (
	maxMarkdown = 1 << 20
	maxDepth    = 40
)

func (h *builder) markdown(src string) {
	src = safetext.Clean(src)
	if len(src) > maxMarkdown || deep(src) {
		h.el("pre", "", src)
		return
	}
	w := &writer{h: h, src: []byte(src)}
	w.children(markup.Parser().Parse(text.NewReader(w.src)), 0)
}

// deep reports whether a text would nest without measure: parsing such a text takes time
// that grows with the square of its length.
func deep(src string) bool {
	for line := range strings.Lines(src) {
		lead := line[:len(line)-len(strings.TrimLeft(line, " >-*+\t"))]
		if strings.Count(lead, ">")+strings.Count(lead, "-")+strings.Count(lead, "*")+strings.Count(lead, "+") > 2*maxDepth && strings.TrimSpace(line[len(lead):]) != "" {
			return true
		}
		if len(line) > 4<<10 && (strings.Count(line, "[") > 1000 || strings.Count(line, "*") > 1000 || strings.Count(line, "_") > 1000 || strings.Count(line, "`") > 1000) {
			return true
		}
	}
	return false
}

// A writer writes the nodes of one text.
type writer struct {
	h   *builder
	src []byte
}

func (w *writer) children(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.node(c, depth)
	}
}

// around writes the children of a node within an element.
func (w *writer) around(tag lit, n ast.Node, depth int) {
	w.h.open(tag, "")
	w.children(n, depth)
	w.h.end(tag)
}

func (w *writer) node(n ast.Node, depth int) {
	depth++
	if depth > maxDepth {
		w.h.raw("…")
		return
	}
	switch n := n.(type) {
	case *ast.Heading:
		w.around(headings[min(max(n.Level, 1), 6)-1], n, depth)
	case *ast.Paragraph:
		w.around("p", n, depth)
	case *ast.Blockquote:
		w.around("blockquote", n, depth)
	case *ast.List:
		w.list(n, depth)
	case *ast.ListItem:
		w.around("li", n, depth)
	case *ast.ThematicBreak:
		w.h.raw("<hr>")
	case *ast.FencedCodeBlock:
		w.code(n, string(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(n, "")
	case *ast.HTMLBlock:
		w.htmlBlock(n)
	case *east.Table:
		w.table(n, depth)
	default:
		w.inline(n, depth)
	}
}

var headings = []lit{"h1", "h2", "h3", "h4", "h5", "h6"}

func (w *writer) list(n *ast.List, depth int) {
	if !n.IsOrdered() {
		w.around("ul", n, depth)
		return
	}
	w.h.raw("<ol")
	if n.Start != 1 {
		w.h.raw(` start="`)
		w.h.textf("%d", n.Start)
		w.h.raw(`"`)
	}
	w.h.raw(">")
	w.children(n, depth)
	w.h.end("ol")
}

func (w *writer) inline(n ast.Node, depth int) {
	switch n := n.(type) {
	case *ast.Text:
		w.h.text(string(n.Value(w.src)))
		if n.HardLineBreak() || n.SoftLineBreak() {
			w.h.raw("<br>")
		}
	case *ast.String:
		w.h.text(string(n.Value))
	case *ast.CodeSpan:
		w.around("code", n, depth)
	case *ast.Emphasis:
		if n.Level == 2 {
			w.around("strong", n, depth)
			return
		}
		w.around("em", n, depth)
	case *ast.Link:
		w.link(string(n.Destination), func() { w.children(n, depth) })
	case *ast.AutoLink:
		label := string(n.Label(w.src))
		w.link(string(n.URL(w.src)), func() { w.h.text(label) })
	case *ast.Image: // nothing is loaded because a model says so
		w.h.raw("🖼 ")
		w.link(string(n.Destination), func() { w.children(n, depth) })
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			at := n.Segments.At(i)
			w.h.text(string(at.Value(w.src)))
		}
	case *east.Strikethrough:
		w.around("del", n, depth)
	case *east.TaskCheckBox:
		if n.IsChecked {
			w.h.raw("☑ ")
			return
		}
		w.h.raw("☐ ")
	default:
		w.children(n, depth)
	}
}

// link writes a link, if it is one that a person may follow: to a web page or to write a
// message. Others are shown as text.
func (w *writer) link(to string, label func()) {
	u, err := url.Parse(to)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") && u.Scheme != "mailto" {
		label()
		if to != "" && !strings.HasPrefix(to, "#") {
			w.h.el("span", "dest", " ("+safetext.ShowLine(to)+")")
		}
		return
	}
	w.h.raw(`<a target="_blank" rel="noopener noreferrer nofollow"`)
	w.h.attr("href", u.String())
	w.h.attr("title", u.String())
	w.h.raw(">")
	label()
	w.h.end("a")
}

func (w *writer) code(n ast.Node, lang string) {
	w.h.raw(`<pre class="code" tabindex="0">`)
	h := markup.NewHighlighter(lang)
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		w.h.codeLine(&h, strings.TrimRight(string(at.Value(w.src)), "\n"))
		w.h.raw("\n")
	}
	w.h.end("pre")
}

var tokenClasses = [...]lit{
	markup.Keyword: "k", markup.String: "s", markup.Comment: "c", markup.Number: "n", markup.Added: "add", markup.Removed: "del",
}

func (h *builder) codeLine(l *markup.Highlighter, line string) {
	for _, t := range l.Line(line) {
		if t.Class == markup.Plain {
			h.text(t.Text)
			continue
		}
		h.el("span", tokenClasses[t.Class], t.Text)
	}
}

func (w *writer) htmlBlock(n *ast.HTMLBlock) {
	w.h.open("p", "")
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		if i > 0 {
			w.h.raw("<br>")
		}
		w.h.text(strings.TrimRight(string(at.Value(w.src)), "\n"))
	}
	if n.HasClosure() {
		w.h.text(string(n.ClosureLine.Value(w.src)))
	}
	w.h.end("p")
}

func (w *writer) table(n *east.Table, depth int) {
	w.h.raw(`<div class="scroll" tabindex="0" role="group" aria-label="table"><table>`)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		tag := lit("td")
		if _, ok := row.(*east.TableHeader); ok {
			tag = "th"
		}
		w.h.open("tr", "")
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			w.around(tag, c, depth)
		}
		w.h.end("tr")
	}
	w.h.raw("</table></div>")
}
