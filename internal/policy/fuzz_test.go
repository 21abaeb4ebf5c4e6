package policy

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzSafe holds the analysis against a walk over the whole tree that knows
// nothing of commands: whatever is not a plain word, list or pipe is unsafe.
func FuzzSafe(f *testing.F) {
	for _, s := range snippets(f) {
		if shell, script, ok := shellScript(s.argv); ok {
			f.Add(shell, script)
		}
	}
	f.Fuzz(func(t *testing.T, shell, script string) {
		argv := []string{shell, "-c", script}
		parsed := Parsed(argv)
		if len(parsed) == 0 {
			t.Errorf("Parsed(%q) is empty", argv)
		}
		if !Safe(argv) {
			return
		}
		if suspect := suspicious(shells[shell], script); suspect != "" {
			t.Errorf("Safe(%q), but it has %s", argv, suspect)
		}
		if strings.ContainsAny(unquotedText(script), "<>$`(){}&\\") && !allowedSigns(script) {
			t.Errorf("Safe(%q), but it has signs outside of quotes", argv)
		}
	})
}

// suspicious names the first thing in a script's tree that must not be there.
func suspicious(lang syntax.LangVariant, script string) string {
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "an error: " + err.Error()
	}
	found := ""
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Word, *syntax.Lit, *syntax.Comment:
		case *syntax.Stmt:
			if n.Negated || n.Background || n.Coprocess || n.Disown {
				found = "a negated or background statement"
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.PipeAll {
				found = "a pipe for errors"
			}
		case *syntax.CallExpr:
			if len(n.Assigns) > 0 {
				found = "an assignment"
			}
		case *syntax.SglQuoted:
			if n.Dollar {
				found = "an escape string"
			}
		case *syntax.DblQuoted:
			if n.Dollar {
				found = "a translated string"
			}
		default: // Redirect, CmdSubst, ParamExp, ArithmExp, ProcSubst, Subshell, FuncDecl, ExtGlob, …
			found = "another node"
		}
		return true
	})
	return found
}

// unquotedText returns a script without its quoted parts and comments, by a
// scan that shares nothing with the parser.
func unquotedText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '\'':
			i += strings.IndexByte(s[i+1:]+"'", '\'') + 1
		case c == '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;|&", s[i-1]) >= 0):
			i += strings.IndexByte(s[i:]+"\n", '\n') - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// allowedSigns reports whether && is all there is of the signs.
func allowedSigns(s string) bool {
	return !strings.ContainsAny(strings.ReplaceAll(unquotedText(s), "&&", ""), "<>$`(){}&\\")
}

// FuzzWords checks that no list of arguments makes the rules panic, and that a
// command which is safe as arguments is so as a quoted script.
func FuzzWords(f *testing.F) {
	for _, s := range snippets(f) {
		f.Add(strings.Join(s.argv, "\x00"))
	}
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x00")
		ok := Safe(argv)
		Parsed(argv)
		script := quote(argv)
		if _, _, shell := shellScript(argv); shell || strings.Contains(script, "$'") || len(script) > maxScript {
			return
		}
		if got := Safe([]string{"bash", "-c", script}); got != ok && !strings.Contains(script, "\\\n") {
			t.Errorf("Safe(%q) = %v, as a script %v", argv, ok, got)
		}
	})
}
