package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A position is a place in a text, counted from 1. The zero value is none.
type position struct{ line, column int }

// A node is a value or a table, and where it was written.
type node struct {
	at    position // of the key
	begin position // of the value, if it is one
	value any      // as go-toml decodes it; nil for a table

	names []string // of the table, in the order written
	child map[string]*node
}

func (n *node) isTable() bool { return n.value == nil }

// down returns the child of that name, made if need be.
func (n *node) down(name string, at position) *node {
	if c, ok := n.child[name]; ok {
		return c
	}
	c := &node{at: at}
	n.put(name, c)
	return c
}

func (n *node) put(name string, c *node) {
	if n.child == nil {
		n.child = map[string]*node{}
	}
	if _, ok := n.child[name]; !ok {
		n.names = append(n.names, name)
	}
	n.child[name] = c
}

// A fault is why a text is not TOML.
type fault struct {
	position
	key  string
	text string
}

// parse reads a text. The library decodes it; its parser is used a second time
// for the positions, which the decoder does not give.
func parse(text []byte) (*node, *fault) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	s := &scanner{text: text, root: &node{}}
	if f := s.scan(); f != nil {
		return nil, f
	}
	var decoded map[string]any
	if err := toml.Unmarshal(text, &decoded); err != nil {
		return nil, s.explain(err)
	}
	fill(s.root, decoded)
	return s.root, nil
}

// fill puts the decoded values into the tree of positions.
func fill(n *node, v any) {
	table, ok := v.(map[string]any)
	if !ok {
		n.value, n.names, n.child = v, nil, nil
		return
	}
	for name, v := range table {
		if c, ok := n.child[name]; ok {
			fill(c, v)
		}
	}
}

// A scanner collects positions.
type scanner struct {
	text        []byte
	root        *node
	expressions []expression
	lines       []int // offsets of the beginnings
}

type expression struct {
	offset int
	path   []string
}

func (s *scanner) scan() *fault {
	s.lines = []int{0}
	for i, b := range s.text {
		if b == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	var p unstable.Parser
	p.Reset(s.text)
	table, prefix := s.root, []string(nil)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			s.keyValue(table, prefix, e)
		case unstable.Table:
			table, prefix = s.header(e)
		case unstable.ArrayTable:
			_, prefix = s.header(e)
			table = &node{} // what is inside has no place of its own in the tree
		}
	}
	if err := p.Error(); err != nil {
		return s.syntax(s.where(&p, err), prefix, err.Error())
	}
	return nil
}

// syntax says what is wrong with a text that the parser refused, in the table
// of that name.
func (s *scanner) syntax(at position, table []string, text string) *fault {
	f := &fault{position: at, text: text}
	start := s.lines[at.line-1]
	line, _, _ := strings.Cut(string(s.text[start:]), "\n")
	name, _, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r != '.' && notBare(r) }) {
		f.key = formatKey(slices.Concat(table, strings.Split(name, ".")))
	}

	switch text {
	case "incomplete number", "expected value, not eof", "expected 'true'", "expected 'false'":
		// What the parser says of a value that begins like none.
		rest := strings.TrimSpace(line[min(at.column-1, len(line)):])
		f.text = "this is not a value; a string needs quotes"
		if rest == "" || rest[0] == '#' {
			f.text = "there is no value"
		}
	}
	return f
}

func (s *scanner) header(e *unstable.Node) (*node, []string) {
	return s.walk(s.root, nil, e, true)
}

func (s *scanner) keyValue(table *node, prefix []string, e *unstable.Node) {
	n, path := s.walk(table, prefix, e, true)
	s.value(n, path, e)
}

// value notes where the value of a key is, and what is in an inline table.
func (s *scanner) value(n *node, path []string, e *unstable.Node) {
	end := int(e.Raw.Offset)
	for it := e.Key(); it.Next(); {
		end = int(it.Node().Raw.Offset + it.Node().Raw.Length)
	}
	rest := s.text[end:]
	n.begin = s.position(end + len(rest) - len(bytes.TrimLeft(rest, " \t=")))

	if e.Value().Kind != unstable.InlineTable {
		return
	}
	for it := e.Value().Children(); it.Next(); {
		c, below := s.walk(n, path, it.Node(), false)
		s.value(c, below, it.Node())
	}
}

// walk goes down from n along the key of e.
func (s *scanner) walk(n *node, prefix []string, e *unstable.Node, top bool) (*node, []string) {
	path := slices.Clone(prefix)
	first := -1
	for it := e.Key(); it.Next(); {
		k := it.Node()
		offset := int(k.Raw.Offset)
		if first < 0 {
			first = offset
		}
		n = n.down(string(k.Data), s.position(offset))
		path = append(path, string(k.Data))
	}
	if top {
		s.expressions = append(s.expressions, expression{first, path})
	}
	return n, path
}

func (s *scanner) position(offset int) position {
	line := sort.SearchInts(s.lines, offset+1) // the first that begins after it
	return position{line, offset - s.lines[line-1] + 1}
}

// where says where the parser stopped; if it has nothing to show for it, the
// text ended too early.
func (s *scanner) where(p *unstable.Parser, err error) position {
	var pe *unstable.ParserError
	if !errors.As(err, &pe) {
		return s.position(len(s.text))
	}
	return s.position(int(p.Range(pe.Highlight).Offset))
}

// explain finds the place of an error of the decoder.
func (s *scanner) explain(err error) *fault {
	f := &fault{text: strings.TrimPrefix(err.Error(), "toml: ")}
	f.text, _, _ = strings.Cut(f.text, ": strconv.") // a number that is too great
	var de *toml.DecodeError
	if errors.As(err, &de) {
		f.line, f.column = de.Position()
		f.key = s.keyAt(f.position)
		return f
	}

	// A key that was set twice comes without a position: it is in the first
	// expression with which the text is no longer good.
	i := sort.Search(len(s.expressions), func(i int) bool {
		end := len(s.text)
		if i+1 < len(s.expressions) {
			end = s.lines[s.position(s.expressions[i+1].offset).line-1]
		}
		var v map[string]any
		return toml.Unmarshal(s.text[:end], &v) != nil
	})
	if i == len(s.expressions) {
		return f
	}
	e := s.expressions[i]
	f.position, f.key = s.position(e.offset), formatKey(e.path)
	if first := s.root.find(e.path).at.line; first < f.line && strings.Contains(f.text, "already") {
		f.text += fmt.Sprintf(" at line %d", first)
	}
	return f
}

// keyAt names the key whose value is at p.
func (s *scanner) keyAt(p position) string {
	key := ""
	for _, e := range s.expressions {
		if s.position(e.offset).line > p.line {
			break
		}
		key = formatKey(e.path)
	}
	return key
}

// find returns the node at a path that is known to be there.
func (n *node) find(path []string) *node {
	for _, name := range path {
		n = n.child[name]
	}
	return n
}
