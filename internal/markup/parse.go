// Package markup reads what models write: Markdown, and code in the languages that people use. It is
// what the drawings of it share, in a terminal and on a page: [Parser] and [Highlighter].
package markup

import (
	"bytes"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Parser parses Markdown with what people are used to: tables, tasks, text struck
// through and bare links. The library's own extensions are not used because they
// take a millisecond at every start of the program, even if it draws nothing. For
// the same reason the parser is made when it is first needed.
var Parser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(taskParser{}, 10), util.Prioritized(strikeParser{}, 600), util.Prioritized(linkParser{}, 700))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(tableParser{}, 200))...),
	)
})

// taskParser finds "[x] " at the beginning of a list item.
type taskParser struct{}

func (taskParser) Trigger() []byte { return []byte{'['} }

func (taskParser) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	line, _ := block.PeekLine()
	if len(line) < 4 || line[2] != ']' || line[3] != ' ' || !strings.ContainsRune(" xX", rune(line[1])) {
		return nil
	}
	block.Advance(4)
	return east.NewTaskCheckBox(line[1] != ' ')
}

// strikeParser finds ~~text~~.
type strikeParser struct{}

func (strikeParser) Trigger() []byte { return []byte{'~'} }

func (s strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, at := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 1, s)
	if d == nil || d.OriginalLength > 2 || before == '~' {
		return nil
	}
	d.Segment = at.WithStop(at.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

func (strikeParser) IsDelimiter(b byte) bool { return b == '~' }

func (strikeParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.OriginalLength == closer.OriginalLength
}

func (strikeParser) OnMatch(int) ast.Node { return east.NewStrikethrough() }

// linkParser finds addresses that stand in the text as they are.
type linkParser struct{}

// Trigger is called for what may stand before an address; a space also means the
// beginning of a line.
func (linkParser) Trigger() []byte { return []byte(" *_~(") }

func (linkParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.IsInLinkLabel() {
		return nil
	}
	line, at := block.PeekLine()
	lead := 0
	if len(line) > 0 && bytes.IndexByte([]byte(" *_~("), line[0]) >= 0 {
		lead = 1
	}
	n := addressLength(line[lead:])
	if n == 0 {
		return nil
	}
	if lead > 0 {
		ast.MergeOrAppendTextSegment(parent, at.WithStop(at.Start+lead))
	}
	block.Advance(lead + n)
	at.Start += lead
	return ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(at.WithStop(at.Start+n)))
}

// addressLength is the length of the address that s begins with, without what
// rather belongs to the sentence around it.
func addressLength(s []byte) int {
	if !bytes.HasPrefix(s, []byte("http://")) && !bytes.HasPrefix(s, []byte("https://")) {
		return 0
	}
	if i := bytes.IndexAny(s, " \n<>\"`|"); i >= 0 {
		s = s[:i]
	}
	behind := ".,;:!?'*_~]"
	if !bytes.Contains(s, []byte("(")) {
		behind += ")"
	}
	s = bytes.TrimRight(s, behind)
	if bytes.HasSuffix(s, []byte("/")) && bytes.Count(s, []byte("/")) == 2 {
		return 0 // nothing but the scheme
	}
	return len(s)
}

// tableParser makes a table of a paragraph whose second line, or a later one, is
// the rule below a head.
type tableParser struct{}

func (tableParser) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	lines := n.Lines()
	for i := 1; i < lines.Len(); i++ {
		rule, head := lines.At(i), lines.At(i-1)
		align := alignments(string(rule.Value(r.Source())))
		if align == nil || len(cells(head, r.Source())) != len(align) {
			continue
		}
		table := east.NewTable()
		table.Alignments = align
		table.SetBlankPreviousLines(i == 1 && n.HasBlankPreviousLines())
		table.AppendChild(table, east.NewTableHeader(tableRow(head, align, r.Source())))
		for k := i + 1; k < lines.Len(); k++ {
			table.AppendChild(table, tableRow(lines.At(k), align, r.Source()))
		}
		parent := n.Parent()
		parent.InsertAfter(parent, n, table)
		if n.Lines().SetSliced(0, i-1); i == 1 {
			parent.RemoveChild(parent, n)
		}
		return
	}
}

func tableRow(line text.Segment, align []east.Alignment, src []byte) *east.TableRow {
	row := east.NewTableRow(align)
	for i, at := range cells(line, src) {
		if i == len(align) {
			break
		}
		cell := east.NewTableCell()
		cell.Lines().Append(at)
		row.AppendChild(row, cell)
	}
	return row
}

// alignments reads a rule such as "|:--|--:|"; nil if it is none.
func alignments(rule string) []east.Alignment {
	rule = strings.TrimSpace(rule)
	if !strings.Contains(rule, "|") || strings.Trim(rule, "|:- ") != "" {
		return nil
	}
	rule = strings.TrimSuffix(strings.TrimPrefix(rule, "|"), "|")
	var list []east.Alignment
	for part := range strings.SplitSeq(rule, "|") {
		part = strings.TrimSpace(part)
		dashes := strings.TrimSuffix(strings.TrimPrefix(part, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil
		}
		left, right := part[0] == ':', part[len(part)-1] == ':'
		switch {
		case left && right:
			list = append(list, east.AlignCenter)
		case right:
			list = append(list, east.AlignRight)
		default:
			list = append(list, east.AlignLeft)
		}
	}
	return list
}

// cells cuts a row at the bars that are not escaped.
func cells(line text.Segment, src []byte) []text.Segment {
	line = trim(line, src)
	s := line.Value(src)
	var list []text.Segment
	add := func(from, to int) {
		list = append(list, trim(text.NewSegment(line.Start+from, line.Start+to), src))
	}
	from := 0
	if len(s) > 0 && s[0] == '|' {
		from = 1
	}
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '|':
			add(from, i)
			from = i + 1
		}
	}
	if from < len(s) {
		add(from, len(s))
	}
	return list
}

func trim(at text.Segment, src []byte) text.Segment {
	at = at.TrimLeftSpace(src)
	return at.TrimRightSpace(src)
}
