package syntax

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Call is a patch that was found in a shell call.
type Call struct {
	Patch string // not parsed yet
	Dir   string // what the script changes to first; empty to stay
}

// Extract finds the patch in the argument vector of a shell call, if running a
// patch is all that the call does. The forms are the command apply_patch (or
// applypatch) with the patch as its only argument, and a shell with a script
// that feeds a here-document to that command, optionally after "cd DIR &&".
// The here-document is taken as it is written: nothing in it is expanded or run,
// whether or not its delimiter is quoted.
func Extract(argv []string) (Call, bool) {
	switch {
	case len(argv) == 2 && isPatchCommand(argv[0]):
		return Call{Patch: argv[1]}, true
	case len(argv) == 3 && isShell(argv[0]) && (argv[1] == "-c" || argv[1] == "-lc"):
		return fromScript(argv[2])
	}
	return Call{}, false
}

func isPatchCommand(name string) bool {
	return name == "apply_patch" || name == "applypatch"
}

func isShell(name string) bool {
	switch path.Base(name) {
	case "bash", "sh", "zsh":
		return true
	}
	return false
}

func fromScript(script string) (Call, bool) {
	dir, doc, ok := patchDocument(script)
	if !ok {
		// An unquoted delimiter makes the shell read the text of the patch as
		// shell code, in which half a quote is an error. With the delimiter
		// quoted it is only text.
		at := bareDelimiter().FindStringSubmatchIndex(script)
		if at == nil {
			return Call{}, false
		}
		script = script[:at[2]] + "'" + script[at[2]:at[3]] + "'" + script[at[3]:]
		dir, doc, ok = patchDocument(script)
	}
	if !ok {
		return Call{}, false
	}
	if word := doc.Word.Lit(); word != "" && !strings.Contains(word, `\`) {
		// It parsed, but as something to be expanded.
		at, end := doc.Word.Pos().Offset(), doc.Word.End().Offset()
		script = script[:at] + "'" + word + "'" + script[end:]
		if dir, doc, ok = patchDocument(script); !ok {
			return Call{}, false
		}
	}

	body := doc.Hdoc.Lit()
	if doc.Op == syntax.DashHdoc {
		lines := strings.SplitAfter(body, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimLeft(line, "\t")
		}
		body = strings.Join(lines, "")
	}
	return Call{Patch: body, Dir: dir}, true
}

var bareDelimiter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<<-?[ \t]*(\w+)[ \t]*\n`) })

// patchDocument returns the here-document of a script that does nothing but
// feed it to a patch command, and the directory that it changes to first.
func patchDocument(script string) (dir string, doc *syntax.Redirect, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil || len(file.Stmts) != 1 || !isPlain(file.Stmts[0]) {
		return "", nil, false
	}
	stmt := file.Stmts[0]
	if and, isBinary := stmt.Cmd.(*syntax.BinaryCmd); isBinary {
		if and.Op != syntax.AndStmt || len(stmt.Redirs) > 0 {
			return "", nil, false
		}
		if dir, ok = cdTarget(and.X); !ok {
			return "", nil, false
		}
		stmt = and.Y
	}
	args, ok := words(stmt)
	if !ok || len(args) != 1 || !isPatchCommand(args[0]) || len(stmt.Redirs) != 1 {
		return "", nil, false
	}
	doc = stmt.Redirs[0]
	if doc.Op != syntax.Hdoc && doc.Op != syntax.DashHdoc || doc.N != nil || doc.Hdoc == nil {
		return "", nil, false
	}
	return dir, doc, true
}

// isPlain says that a statement is nothing but its command.
func isPlain(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown
}

// words returns the words of a simple command if all of them are known without
// running anything.
func words(s *syntax.Stmt) ([]string, bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || !isPlain(s) || len(call.Assigns) > 0 {
		return nil, false
	}
	var words []string
	for _, w := range call.Args {
		text, ok := literal(w)
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, true
}

func cdTarget(s *syntax.Stmt) (string, bool) {
	args, ok := words(s)
	if !ok || len(s.Redirs) > 0 || len(args) != 2 || args[0] != "cd" {
		return "", false
	}
	if args[1] == "" || strings.HasPrefix(args[1], "-") {
		return "", false
	}
	return args[1], true
}

// literal returns the text of a word that the shell would leave as it is, but
// for its quotes.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, "*?[{~") {
				return "", false
			}
			b.WriteString(unescape(part.Value, ""))
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(unescape(lit.Value, "$`\"\\\n"))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape removes the backslashes that the shell removes: all of them, or
// those before one of the given characters.
func unescape(s, before string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (before == "" || strings.IndexByte(before, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
