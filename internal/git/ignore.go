package git

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// An Ignorer knows which files git ignores below a directory, from the .gitignore
// files on the way and .git/info/exclude. Of a list of rules the last that fits
// counts, and the rules of a deeper directory count more.
type Ignorer struct {
	rules []ignoreRule
}

type ignoreRule struct {
	base    string // the directory of the rule, absolute
	match   *regexp.Regexp
	dirOnly bool
	include bool // "!": not ignored after all
}

// Ignoring returns the rules that are in force in a directory: those of the
// directories from the root of its repository down to it.
func Ignoring(dir string) *Ignorer {
	var dirs []string
	for d := dir; ; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			break
		}
		if d == filepath.Dir(d) { // no repository: only its own rules
			dirs = dirs[:1]
			break
		}
	}
	ig := &Ignorer{}
	root := dirs[len(dirs)-1]
	ig.read(root, filepath.Join(root, ".git", "info", "exclude"))
	for i := len(dirs) - 1; i >= 0; i-- {
		ig.read(dirs[i], filepath.Join(dirs[i], ".gitignore"))
	}
	return ig
}

// Within returns the rules that are in force in a directory below.
func (ig *Ignorer) Within(dir string) *Ignorer {
	deeper := &Ignorer{rules: ig.rules[:len(ig.rules):len(ig.rules)]}
	deeper.read(dir, filepath.Join(dir, ".gitignore"))
	return deeper
}

const maxIgnoreFile = 1 << 20

func (ig *Ignorer) read(base, name string) {
	text, err := readIgnore(name)
	if err != nil {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := parseIgnore(base, strings.TrimSuffix(line, "\r")); ok {
			ig.rules = append(ig.rules, r)
		}
	}
}

// readIgnore reads a file of rules. It may be a pipe, or a link to elsewhere, which
// git does not follow either.
func readIgnore(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fs.ErrInvalid
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	return string(text), err
}

// parseIgnore reads one line of a .gitignore file.
func parseIgnore(base, line string) (ignoreRule, bool) {
	r := ignoreRule{base: base}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t")
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.include, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	expr := GlobExpr(line)
	if !anchored {
		expr = "(?:.*/)?" + expr
	}
	match, err := regexp.Compile("^" + expr + "$")
	if err != nil {
		return r, false
	}
	r.match = match
	return r, true
}

// GlobExpr is a regular expression for a glob in which "**" goes over
// directories and nothing else does.
func GlobExpr(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 3
		case rest == "**" && (i == 0 || glob[i-1] == '/'):
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		case rest[0] == '[':
			class, n := globClass(rest)
			b.WriteString(class)
			i += n
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return b.String()
}

// globClass is the expression for a character class, and its length in the glob.
func globClass(rest string) (string, int) {
	start := 1
	if len(rest) > 1 && (rest[1] == '!' || rest[1] == '^') {
		start = 2
	}
	end := strings.IndexByte(rest[min(start+1, len(rest)):], ']')
	if end < 0 {
		return regexp.QuoteMeta("["), 1
	}
	end += start + 1
	inner := strings.NewReplacer(`[`, `\[`, `^`, `\^`, `&&`, `\&&`).Replace(rest[start:end])
	if start == 2 {
		return "[^/" + inner + "]", end + 1
	}
	return "[" + inner + "]", end + 1
}

// Ignored reports whether git ignores the entry.
func (ig *Ignorer) Ignored(name string, dir bool) bool {
	for i := len(ig.rules) - 1; i >= 0; i-- {
		r := ig.rules[i]
		if r.dirOnly && !dir {
			continue
		}
		rel, ok := strings.CutPrefix(name, strings.TrimSuffix(r.base, "/")+"/")
		if ok && r.match.MatchString(rel) {
			return !r.include
		}
	}
	return false
}
