package policy

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A ParsedCommand says in short what a command does, for display; nothing is
// decided by it. Its JSON is an element of parsed_cmd on the wire.
type ParsedCommand struct {
	Type    string   `json:"type"` // read list_files search format test lint noop unknown
	Cmd     string   `json:"cmd"`
	Name    string   `json:"name,omitempty"`    // read: which file, without its directory
	Query   string   `json:"query,omitempty"`   // search: for what
	Path    string   `json:"path,omitempty"`    // list_files, search: where
	Tool    string   `json:"tool,omitempty"`    // format, lint
	Targets []string `json:"targets,omitempty"` // format, lint
}

// Parsed says what a command does, one element for each part that matters: a
// change of directory and filters behind a pipe do not. If it does not know a
// part, the whole is one element of type unknown.
func Parsed(argv []string) []ParsedCommand {
	whole := quote(argv)
	parts := []simple{}
	if shell, script, ok := shellScript(argv); ok {
		whole = script
		parts, _ = simples(shell, script, silences)
	} else if len(argv) > 0 {
		parts = append(parts, simple{words: fromArgv(argv), source: whole})
	}
	unknown := []ParsedCommand{{Type: "unknown", Cmd: whole}}

	var out, noops []ParsedCommand
	for _, s := range parts {
		p, ok := classify(s)
		switch {
		case !ok:
			return unknown
		case p.Type == "noop":
			noops = append(noops, p)
		case p.Type != "":
			out = append(out, p)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(noops) > 0:
		return noops[:1]
	}
	return unknown
}

// silences reports whether a redirection only does away with error messages, or
// mixes them in.
func silences(r *syntax.Redirect) bool {
	if r.N == nil || r.N.Value != "2" {
		return false
	}
	to := r.Word.Lit()
	return r.Op == syntax.RdrOut && to == "/dev/null" || r.Op == syntax.DplOut && to == "1"
}

func quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			q = a
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " ")
}

// A kind says what a program does, and which of its options have a value in the
// next argument.
type kind struct {
	kind   string
	values string
}

// kinds knows programs by name, or by name and first operand.
var kinds = map[string]kind{
	"cat": {"read", ""}, "bat": {"read", "-r -l"}, "nl": {"read", "-b -s -w -v -n"}, "less": {"read", ""}, "more": {"read", ""},
	"head": {"read", "-n -c"}, "tail": {"read", "-n -c"}, "sed": {"read", "-n"}, "wc": {"filter", ""},
	"sort": {"filter", ""}, "uniq": {"filter", ""}, "cut": {"filter", ""}, "tr": {"filter", ""}, "column": {"filter", ""},
	"ls": {"list", "-I -w"}, "tree": {"list", "-L -I -P"}, "git ls-files": {"list", ""}, "find": {"find", ""},
	"rg":   {"search", "-A -B -C -E -M -T -d -e -f -g -j -m -r -t --glob --type --max-count --context --after-context --before-context --sort"},
	"grep": {"search", "-A -B -C -e -f -m --context"}, "git grep": {"search", "-A -B -C -e"},
	"go test": {"test", ""}, "cargo test": {"test", ""}, "pytest": {"test", ""}, "npm test": {"test", ""}, "pnpm test": {"test", ""},
	"yarn test": {"test", ""}, "jest": {"test", ""}, "vitest": {"test", ""}, "make test": {"test", ""}, "make check": {"test", ""},
	"gofmt": {"format", ""}, "gofumpt": {"format", ""}, "go fmt": {"format", ""}, "cargo fmt": {"format", ""}, "rustfmt": {"format", ""},
	"prettier": {"format", ""}, "black": {"format", ""}, "ruff format": {"format", ""},
	"go vet": {"lint", ""}, "staticcheck": {"lint", ""}, "golangci-lint": {"lint", ""}, "cargo clippy": {"lint", ""},
	"eslint": {"lint", ""}, "ruff check": {"lint", ""}, "shellcheck": {"lint", ""},
	"cd": {"noop", ""}, "true": {"noop", ""}, ":": {"noop", ""}, "echo": {"noop", ""}, "pwd": {"noop", ""},
}

// classify says what one command does. The type is empty if it does not matter.
func classify(s simple) (ParsedCommand, bool) {
	var args []string
	for _, w := range s.words {
		args = append(args, w.text)
	}
	tool := path.Base(args[0])
	k, ok := kinds[tool]
	rest := args[1:]
	if !ok && len(rest) > 0 {
		tool += " " + rest[0]
		k, ok = kinds[tool]
		rest = rest[1:]
	}
	if !ok {
		return ParsedCommand{}, false
	}

	p := ParsedCommand{Type: k.kind, Cmd: s.source}
	files := operands(rest, k.values)
	switch k.kind {
	case "read":
		if tool == "sed" && !sedRule(s.words[1:]) {
			return p, false
		}
		if len(files) == 0 {
			return ParsedCommand{}, s.piped
		}
		p.Name = path.Base(files[len(files)-1])
	case "filter":
		return ParsedCommand{}, s.piped
	case "list":
		p.Type, p.Path = "list_files", at(files, 0)
	case "find":
		return parseFind(p, s.words[1:])
	case "search":
		return parseSearch(p, rest, files), true
	case "format", "lint":
		p.Tool, p.Targets = tool, files
	}
	return p, true
}

func parseSearch(p ParsedCommand, args, files []string) ParsedCommand {
	for i, a := range args {
		switch a {
		case "--files":
			p.Type, p.Path = "list_files", at(files, 0)
			return p
		case "-e":
			p.Query, p.Path = at(args, i+1), at(files, 0)
			return p
		}
	}
	p.Query, p.Path = at(files, 0), at(files, 1)
	return p
}

// parseFind takes a find that looks for a name as a search, and others that only
// look as a list.
func parseFind(p ParsedCommand, args []word) (ParsedCommand, bool) {
	if !findRule(args) {
		return p, false
	}
	p.Type = "list_files"
	for i, a := range args {
		switch a.text {
		case "-name", "-iname", "-path", "-ipath", "-regex":
			if i+1 < len(args) {
				p.Type, p.Query = "search", args[i+1].text
			}
		}
	}
	if len(args) > 0 && isOperand(args[0]) {
		p.Path = args[0].text
	}
	return p, true
}

// operands returns the arguments that are neither options nor values of these.
func operands(args []string, values string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return append(out, args[i+1:]...)
		case !strings.HasPrefix(a, "-") || a == "-":
			out = append(out, a)
		case strings.Contains(" "+values+" ", " "+a+" "):
			i++
		}
	}
	return out
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}
