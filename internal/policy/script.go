package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is an argument as a command will get it, as far as that can be known
// without running anything.
type word struct {
	text  string
	fixed int // bytes of text before the first pattern character; len(text) if there is none
}

// plain reports whether the command will get exactly text.
func (w word) plain() bool { return w.fixed == len(w.text) }

// is reports whether the command will get exactly s.
func (w word) is(s string) bool { return w.plain() && w.text == s }

// A simple is one simple command of a script: a name and arguments.
type simple struct {
	words  []word // at least one
	source string // as it is written in the script
	piped  bool   // reads what the command before it prints
}

// maxScript bounds what is parsed. The parser is recursive, and an overflowing
// stack cannot be caught; no user writes a longer script just to look around.
const maxScript = 8 << 10

var shells = map[string]syntax.LangVariant{
	"bash": syntax.LangBash,
	"sh":   syntax.LangPOSIX,
	"zsh":  syntax.LangZsh,
}

// shellScript takes apart a call of a shell with a script and nothing else.
func shellScript(argv []string) (shell, script string, ok bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", "", false
	}
	shell, ok = programName(argv[0])
	if _, known := shells[shell]; !ok || !known {
		return "", "", false
	}
	return shell, argv[2], true
}

// A scan collects the simple commands of a script, as long as there is nothing
// else in it.
type scan struct {
	script string
	allow  func(*syntax.Redirect) bool // which redirections are passed over; nil: none
	found  []simple
}

// simples returns the commands of a script that consists of simple commands
// joined by && || ; | and newlines, all with words that are known in advance up
// to patterns of file names. It reports false for any other script.
func simples(shell, script string, allow func(*syntax.Redirect) bool) ([]simple, bool) {
	if len(script) > maxScript || strings.ContainsFunc(script, isControl) {
		return nil, false
	}
	// The parser joins lines where the shells do not: a comment that ends in a
	// backslash swallows the next line in its eyes, which the shells run.
	if strings.Contains(script, "\\\n") {
		return nil, false
	}
	// Text that is not UTF-8 is an error to the parser.
	file, err := syntax.NewParser(syntax.Variant(shells[shell])).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, false
	}
	s := scan{script: script, allow: allow}
	for _, stmt := range file.Stmts {
		if !s.stmt(stmt, false) {
			return nil, false
		}
	}
	return s.found, len(s.found) > 0
}

// isControl finds characters on which the parser and the shells disagree: NUL is
// dropped here or there, and a carriage return is white space or a letter.
func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

func (s *scan) stmt(st *syntax.Stmt, piped bool) bool {
	if st.Negated || st.Background || st.Coprocess || st.Disown {
		return false
	}
	for _, r := range st.Redirs {
		if s.allow == nil || !s.allow(r) {
			return false
		}
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		return s.call(c, st, piped)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt:
			return s.stmt(c.X, piped) && s.stmt(c.Y, false)
		case syntax.Pipe:
			return s.stmt(c.X, piped) && s.stmt(c.Y, true)
		}
	}
	return false
}

func (s *scan) call(c *syntax.CallExpr, st *syntax.Stmt, piped bool) bool {
	if len(c.Assigns) > 0 || len(c.Args) == 0 {
		return false
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		var ok bool
		if words[i], ok = literal(w); !ok {
			return false
		}
	}
	s.found = append(s.found, simple{words, s.source(st), piped})
	return true
}

// source returns the text of a statement.
func (s *scan) source(st *syntax.Stmt) string {
	from, to := st.Pos().Offset(), st.End().Offset()
	if from > to || to > uint(len(s.script)) {
		return s.script
	}
	return strings.TrimRight(s.script[from:to], "; \t\n")
}

// literal works out what a word of a script means. syntax.Word.Lit is of no use
// for it: that is empty for all words with quotes.
func literal(w *syntax.Word) (word, bool) {
	b := builder{fixed: -1}
	for _, part := range w.Parts {
		ok := false
		switch p := part.(type) {
		case *syntax.Lit:
			ok = b.unquoted(p.Value)
		case *syntax.SglQuoted:
			b.buf = append(b.buf, p.Value...)
			ok = !p.Dollar
		case *syntax.DblQuoted:
			ok = !p.Dollar && b.quoted(p.Parts)
		}
		if !ok {
			return word{}, false
		}
	}
	out := word{text: string(b.buf), fixed: b.fixed}
	if b.fixed < 0 {
		out.fixed = len(out.text)
	}
	return out, true
}

type builder struct {
	buf   []byte
	fixed int // where the first pattern begins, or -1
}

// Characters that mean themselves outside of quotes in every shell, and those
// that a shell may take for a pattern of file names. All others are refused,
// although most are harmless in most shells: { } make several words, ( ) after a
// pattern run code in zsh, and old shells take a part of some letters beyond
// ASCII for white space.
const (
	letters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=!"
	patterns = "*?[]^~"
)

// unquoted adds a part that is not quoted, of which s is the source.
func (b *builder) unquoted(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		first := len(b.buf) == 0 && i == 0
		switch {
		case c == '\\':
			i++
			if i == len(s) {
				return false
			}
			c = s[i]
		case first && c == '=': // zsh: the path of a program
			return false
		case first && c == '~': // a directory: something else, but never an option
		case strings.IndexByte(patterns, c) >= 0:
			if b.fixed < 0 {
				b.fixed = len(b.buf)
			}
		case strings.IndexByte(letters, c) < 0:
			return false
		}
		b.buf = append(b.buf, c)
	}
	return true
}

// quoted adds a part in double quotes.
func (b *builder) quoted(parts []syntax.WordPart) bool {
	var text strings.Builder // the parser cuts it up at a lone dollar
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return false
		}
		text.WriteString(lit.Value)
	}
	s := text.String()
	for i := 0; i < len(s); i++ {
		c, next := s[i], byte('"')
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch {
		case c == '\\' && strings.IndexByte("$`\"\\", next) >= 0:
			i++
			c = next
		case c == '$' && strings.IndexByte("\" |)", next) < 0:
			return false // what the parser of one shell takes for text may mean something to another
		}
		b.buf = append(b.buf, c)
	}
	return true
}

// fromArgv makes words of arguments that no shell will look at.
func fromArgv(argv []string) []word {
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = word{a, len(a)}
	}
	return words
}
