package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Class says what a piece of code is.
type Class int

// The classes.
const (
	Plain Class = iota
	Keyword
	String
	Comment
	Number
	Added
	Removed
)

// A Token is a piece of code of one class.
type Token struct {
	Text  string
	Class Class
}

// A Highlighter finds out what the pieces of code are, line by line. What continues over lines, a
// comment or a long string, is all it remembers; a copy can go its own way.
type Highlighter struct {
	lang  *language
	until string // what ends the comment or string that is open
	class Class
}

// NewHighlighter takes what stands behind the fence, such as "go" or
// "python title=x". Unknown languages stay plain.
func NewHighlighter(info string) Highlighter {
	name := strings.ToLower(info)
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("{,:", r) }); i >= 0 {
		name = name[:i]
	}
	return Highlighter{lang: languages()[name]}
}

// Line takes the next line apart. The tokens together are the line.
func (h *Highlighter) Line(s string) []Token {
	r := &tokens{}
	switch {
	case h.lang == nil:
		r.add(s, Plain)
	case h.lang.diff:
		r.add(s, diffClass(s))
	default:
		for i := 0; i < len(s); {
			i += h.token(r, s, i)
		}
	}
	return r.list
}

// tokens is a line being taken apart.
type tokens struct{ list []Token }

func (t *tokens) add(s string, c Class) {
	if s != "" {
		t.list = append(t.list, Token{s, c})
	}
}

func diffClass(s string) Class {
	switch {
	case strings.HasPrefix(s, "+"):
		return Added
	case strings.HasPrefix(s, "-"):
		return Removed
	case strings.HasPrefix(s, "@@"), strings.HasPrefix(s, "diff "):
		return Keyword
	}
	return Plain
}

// token colours what begins at i and returns its length.
func (h *Highlighter) token(r *tokens, s string, i int) int {
	if h.until != "" {
		return h.rest(r, s, i, i)
	}
	l, rest := h.lang, s[i:]
	for _, o := range l.long {
		if strings.HasPrefix(rest, o.open) {
			h.until, h.class = o.close, o.class
			return h.rest(r, s, i, i+len(o.open))
		}
	}
	for _, c := range l.comments {
		if strings.HasPrefix(rest, c) && (c != "#" || i == 0 || s[i-1] == ' ') {
			r.add(rest, Comment)
			return len(rest)
		}
	}
	c := rest[0]
	switch {
	case strings.IndexByte(l.quotes, c) >= 0:
		return h.quoted(r, s, i)
	case isDigit(c) && (i == 0 || !isWord(s[i-1])):
		n := span(rest, func(c byte) bool { return isWord(c) || c == '.' })
		r.add(rest[:n], Number)
		return n
	case isWord(c):
		return h.word(r, s, i)
	}
	_, n := utf8.DecodeRuneInString(rest)
	r.add(rest[:n], Plain)
	return n
}

// rest colours the open comment or string from i on, looking for its end from
// after on.
func (h *Highlighter) rest(r *tokens, s string, i, after int) int {
	n := len(s) - i
	if at := strings.Index(s[after:], h.until); at >= 0 {
		n = after + at + len(h.until) - i
		h.until = ""
	}
	r.add(s[i:i+n], h.class)
	return n
}

// quoted colours a string that ends on its line.
func (h *Highlighter) quoted(r *tokens, s string, i int) int {
	q, rest := s[i], s[i+1:]
	if q == '\'' && h.lang.chars && !isChar(rest) {
		r.add("'", Plain) // a lifetime, or a digit separator
		return 1
	}
	n := len(s) - i
	for k := 0; k < len(rest); k++ {
		if rest[k] == '\\' && (q != '\'' || !h.lang.shell) {
			k++
			continue
		}
		if rest[k] == q {
			n = k + 2
			break
		}
	}
	class := String
	if h.lang.keys && strings.HasPrefix(strings.TrimLeft(s[i+n:], " "), ":") {
		class = Keyword
	}
	r.add(s[i:i+n], class)
	return n
}

// isChar reports whether a character literal ends soon.
func isChar(rest string) bool {
	end := strings.IndexByte(rest, '\'')
	if end == 0 && strings.HasPrefix(rest, "''") {
		return true
	}
	return end > 0 && (rest[0] == '\\' && end <= 10 || utf8.RuneCountInString(rest[:end]) == 1)
}

func (h *Highlighter) word(r *tokens, s string, i int) int {
	rest := s[i:]
	n := span(rest, isWord)
	word := rest[:n]
	if h.lang.keys && strings.TrimLeft(s[:i], " -") == "" {
		if k := span(rest, func(c byte) bool { return isWord(c) || c == '-' || c == '.' }); isKey(rest[k:]) {
			r.add(rest[:k], Keyword)
			return k
		}
	}
	if h.lang.known[word] || h.lang.anyCase && h.lang.known[strings.ToLower(word)] {
		r.add(word, Keyword)
		return n
	}
	r.add(word, Plain)
	return n
}

func isKey(after string) bool {
	after = strings.TrimLeft(after, " ")
	return strings.HasPrefix(after, "=") || after == ":" || strings.HasPrefix(after, ": ")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord takes every byte of a character beyond ASCII for a letter.
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}
