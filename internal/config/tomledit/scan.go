package tomledit

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const bom = "\ufeff"

// A statement is a header or a key with its value.
type statement struct {
	path    []string // from the root
	header  bool     // [path] or [[path]]
	inArray bool     // it is, or is below, an array of tables
	table   []string // of a key: the header that it stands under
	start   int      // of the line that it begins on
	end     int      // behind its line break
	value   span     // of a key
}

// A span is a part of the text.
type span struct{ from, to int }

// scan finds the statements of a text that is known to be TOML.
func scan(text string) []statement {
	s := scanner{text: text}
	if strings.HasPrefix(text, bom) {
		s.at = len(bom)
	}
	var list []statement
	var table []string
	array := [][]string{}
	inArray := func(path []string) bool {
		return slices.ContainsFunc(array, func(a []string) bool { return hasPrefix(path, a) })
	}
	for {
		s.skipBlank()
		if s.at >= len(text) {
			return list
		}
		st := statement{start: s.lineStart()}
		if text[s.at] == '[' {
			double := strings.HasPrefix(text[s.at:], "[[")
			s.at++
			if double {
				s.at++
			}
			st.path, st.header = s.key(), true
			table = st.path
			if double {
				array = append(array, st.path)
			}
			st.inArray = inArray(st.path)
		} else {
			keys := s.key()
			s.at++ // =
			s.skipSpace()
			st.path, st.table = slices.Concat(table, keys), table
			st.inArray = inArray(table)
			st.value.from = s.at
			s.skipValue()
			st.value.to = s.at
		}
		s.skipLine()
		st.end = s.at
		list = append(list, st)
	}
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// A scanner goes through a text that is known to be TOML.
type scanner struct {
	text string
	at   int
}

func (s *scanner) rest() string { return s.text[s.at:] }

func (s *scanner) lineStart() int { return strings.LastIndexByte(s.text[:s.at], '\n') + 1 }

func (s *scanner) skipSpace() {
	s.at += len(s.rest()) - len(strings.TrimLeft(s.rest(), " \t"))
}

// skipBlank skips white space, line breaks and comments.
func (s *scanner) skipBlank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			s.skipLine()
		default:
			return
		}
	}
}

// skipLine goes to the next line.
func (s *scanner) skipLine() {
	if i := strings.IndexByte(s.rest(), '\n'); i >= 0 {
		s.at += i + 1
		return
	}
	s.at = len(s.text)
}

// key reads a dotted key and stops behind it.
func (s *scanner) key() []string {
	var path []string
	for {
		s.skipSpace()
		path = append(path, s.keyPart())
		s.skipSpace()
		if s.at >= len(s.text) || s.text[s.at] != '.' {
			return path
		}
		s.at++
	}
}

func (s *scanner) keyPart() string {
	from := s.at
	if c := s.text[s.at]; c == '"' || c == '\'' {
		s.skipString()
		var m map[string]int
		if toml.Unmarshal([]byte(s.text[from:s.at]+"=0"), &m) == nil {
			for name := range m {
				return name
			}
		}
		return s.text[from:s.at]
	}
	for s.at < len(s.text) && !strings.ContainsRune(" \t.=]", rune(s.text[s.at])) {
		s.at++
	}
	return s.text[from:s.at]
}

// skipValue skips one value.
func (s *scanner) skipValue() {
	switch c := s.text[s.at]; c {
	case '"', '\'':
		s.skipString()
	case '[', '{':
		s.skipNested()
	default:
		for s.at < len(s.text) && !strings.ContainsRune(",]}#\r\n", rune(s.text[s.at])) {
			s.at++
		}
		for s.text[s.at-1] == ' ' || s.text[s.at-1] == '\t' {
			s.at--
		}
	}
}

// skipNested skips an array or an inline table.
func (s *scanner) skipNested() {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"', '\'':
			s.skipString()
			continue
		case '#':
			s.skipLine()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}

// skipString skips a string of any of the four kinds.
func (s *scanner) skipString() {
	quote := s.text[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.rest(), triple) {
		quote = triple
	}
	s.at += len(quote)
	for s.at < len(s.text) && !strings.HasPrefix(s.rest(), quote) {
		if quote[0] == '"' && s.text[s.at] == '\\' {
			s.at++
		}
		s.at++
	}
	s.at = min(s.at+len(quote), len(s.text))
	if len(quote) == 3 { // such a string may end with up to two quotes more
		for n := 0; n < 2 && s.at < len(s.text) && s.text[s.at] == quote[0]; n++ {
			s.at++
		}
	}
}

// An entry is a key of an inline table.
type entry struct {
	path  []string // in the table
	whole span     // with its key
	value span
}

// entries takes an inline table apart.
func entries(text string, table span) []entry {
	s := scanner{text: text, at: table.from + 1}
	var list []entry
	for {
		s.skipBlank()
		if s.at >= table.to-1 {
			return list
		}
		if text[s.at] == ',' {
			s.at++
			continue
		}
		e := entry{whole: span{from: s.at}}
		e.path = s.key()
		s.at++ // =
		s.skipBlank()
		e.value.from = s.at
		s.skipValue()
		e.value.to, e.whole.to = s.at, s.at
		list = append(list, e)
	}
}
