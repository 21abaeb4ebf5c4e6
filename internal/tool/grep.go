package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/rootfs"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// Grep searches files: with ripgrep where there is one, else by itself.
type Grep struct {
	Files *Files
	Shell *Shell // runs ripgrep; nil searches without it
}

const (
	grepMatches = 200
	grepFile    = 16 << 20 // larger files are left out
	grepColumns = 400      // bytes of a line that are shown
)

var grepSchema = &args.Schema{
	Tool: "grep", Example: `{"pattern":"func New\\w+\\(","path":"src","glob":"*.go"}`,
	Params: []args.Param{
		{Name: "pattern", Type: args.String, Required: true, Description: "The regular expression to search for.", Aliases: []string{"query", "regex", "search"}},
		{Name: "path", Type: args.String, Description: "The file or directory to search. Default: the working directory.", Aliases: append([]string{"dir", "directory", "dir_path"}, pathNames...)},
		{Name: "glob", Type: args.String, Description: `Only files that fit this glob, such as "*.go".`, Aliases: []string{"include", "include_pattern", "file_pattern"}},
		{Name: "ignore_case", Type: args.Boolean, Description: "Default: false.", Aliases: []string{"case_insensitive", "i", "-i"}},
		{Name: "context", Type: args.Number, Description: "How many lines to show before and after each match. Default: 0.", Aliases: []string{"C", "context_lines"}},
		{Name: "files_only", Type: args.Boolean, Description: "Return only the names of the files. Default: false.", Aliases: []string{"files_with_matches"}},
		{Name: "limit", Type: args.Number, Description: "The most lines to return. Default: 200.", Aliases: []string{"max_results", "head_limit"}},
	},
}

// Spec describes the tool to the model.
func (g *Grep) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "grep", Kind: protocol.CallFunction,
		Description: grepSchema.Describe("Searches files for a regular expression, line by line, leaving out binary files and what .gitignore names. " +
			"A result is path:line:text."),
		Parameters: grepSchema.JSON(),
	}
}

// ReadOnly reports that searches may run side by side.
func (g *Grep) ReadOnly() bool { return true }

// A search is what a call of grep asks for.
type search struct {
	pattern, path, glob string
	ignoreCase, names   bool
	context, limit      int
}

// Run searches for one call.
func (g *Grep) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(grepSchema)
	if wrong != nil {
		return *wrong
	}
	q := search{
		pattern: v.String("pattern"), path: v.String("path"), glob: v.String("glob"),
		ignoreCase: v.Bool("ignore_case", false), names: v.Bool("files_only", false),
		context: min(max(0, int(v.Number("context", 0))), 20), limit: max(1, int(v.Number("limit", grepMatches))),
	}
	if q.path == "" {
		q.path = "."
	}
	if q.pattern == "" {
		return failure(grepSchema.Error("the pattern is empty"))
	}
	began := time.Now()
	root, err := g.Files.locate(call, q.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no such file or directory%s", similarNames(within(call.Settings.Cwd, q.path)))
	}
	if err != nil {
		return lookResult(ctx, call, q.argv("rg"), began, "", fmt.Errorf("%s: %w", q.path, err))
	}
	if rg := g.ripgrep(); rg != "" {
		return g.run(ctx, call, q, rg)
	}
	text, err := q.search(ctx, g.Files, root)
	return lookResult(ctx, call, q.argv("rg"), began, text, err)
}

// argv is the search as a call of ripgrep.
func (q search) argv(rg string) []string {
	argv := []string{rg, "-n"}
	if q.ignoreCase {
		argv = append(argv, "-i")
	}
	if q.names {
		argv = append(argv, "-l")
	}
	if q.context > 0 {
		argv = append(argv, "-C", strconv.Itoa(q.context))
	}
	if q.glob != "" {
		argv = append(argv, "-g", q.glob)
	}
	return append(argv, "-e", q.pattern, "--", q.path)
}

// ripgrep is where ripgrep is, "" if it is not there.
func (g *Grep) ripgrep() string {
	if g.Shell == nil {
		return ""
	}
	for _, v := range g.Shell.environ() {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			name := filepath.Join(dir, "rg")
			if info, err := os.Stat(name); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return name
			}
		}
	}
	return ""
}

// run searches with ripgrep, under the policy and the sandbox of every command.
func (g *Grep) run(ctx context.Context, call Call, q search, rg string) Result {
	argv := q.argv(rg)
	argv = append([]string{argv[0], "--no-config", "--color=never", "--no-heading", "--with-filename", "--sort=path", "--hidden", "--glob=!.git"}, argv[1:]...)
	spec := proc.Spec{
		Argv: argv, Dir: call.Settings.Cwd, Timeout: defaultTimeout, Grace: g.Shell.Grace, Bound: stopBound, Env: g.Shell.environ(),
	}
	l, instead := g.Shell.clear(ctx, call, spec, escalation{})
	if instead != nil {
		return *instead
	}
	res, out, err := g.Shell.run(ctx, call, l.spec)
	if err != nil {
		return notRun(ctx, err)
	}
	c := out.command(res)
	result := protocol.ToolOutput{Command: &c, Elapsed: c.Elapsed, Aborted: res.Stopped}
	switch {
	case res.Stopped:
	case res.TimedOut:
		result.Failed, result.Output = true, "the search took too long; narrow it down"
	case res.ExitCode == 1 && c.Output == "":
		result.Output = noMatches
	case res.ExitCode > 1 || res.ExitCode < 0:
		result.Failed, result.Output = true, show(call, c, defaultBytes)
	default:
		result.Output = firstLines(c.Output, q.limit)
	}
	return Result{Output: result}
}

const noMatches = "(no matches)"

// firstLines returns at most n lines of a text, each cut to what is shown.
func firstLines(text string, n int) string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		if i == n || b.Len() > defaultBytes {
			b.WriteString("[There are more matches. Narrow the search down.]\n")
			break
		}
		line = strings.TrimSuffix(line, "\n")
		if len(line) > grepColumns {
			line = strings.ToValidUTF8(line[:grepColumns], "") + " [...]"
		}
		b.WriteString(strings.TrimPrefix(line, "./") + "\n")
		i++
	}
	return b.String()
}

// search searches without ripgrep.
func (q search) search(ctx context.Context, files *Files, root string) (string, error) {
	expr := q.pattern
	if q.ignoreCase {
		expr = "(?i)" + expr
	}
	match, err := regexp.Compile(expr)
	if err != nil {
		return "", fmt.Errorf("the pattern is not a regular expression: %w", err)
	}
	var b strings.Builder
	n := 0
	file := func(rel, full string) error {
		if files.secret(full) {
			return nil
		}
		n += q.file(&b, match, rel, full, q.limit-n)
		if n >= q.limit || b.Len() > defaultBytes {
			b.WriteString("[There may be more matches. Narrow the search down.]\n")
			return fs.SkipAll
		}
		return nil
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		err = file(q.path, root)
		if errors.Is(err, fs.SkipAll) {
			err = nil
		}
		return orNone(b.String()), err
	}
	err = walk(ctx, root, 1000, func(rel string, d fs.DirEntry) error {
		if !d.Type().IsRegular() || q.glob != "" && !git.MatchesGlob(q.glob, rel) {
			return nil
		}
		return file(filepath.Join(q.path, rel), filepath.Join(root, rel))
	})
	if err != nil {
		return "", err
	}
	return orNone(b.String()), nil
}

func orNone(text string) string {
	if text == "" {
		return noMatches
	}
	return text
}

// file searches one file and returns how many lines it wrote.
func (q search) file(b *strings.Builder, match *regexp.Regexp, name, full string, room int) int {
	f, err := rootfs.Open(full)
	if err != nil {
		return 0
	}
	defer f.Close()
	data, more, err := readSome(f, grepFile)
	if err != nil || more || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return 0
	}
	if !strings.ContainsAny(q.pattern, `^$\`) && !match.Match(data) { // most files, at once
		return 0
	}
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n")
	n, shown := 0, 0 // shown is the first line that was not shown yet
	for i, line := range lines {
		if n >= room {
			break
		}
		if !match.MatchString(line) {
			continue
		}
		if q.names {
			b.WriteString(name + "\n")
			return 1
		}
		from := max(shown, i-q.context)
		if q.context > 0 && from > shown && shown > 0 {
			b.WriteString("--\n")
		}
		for j := from; j <= min(i+q.context, len(lines)-1); j++ {
			mark := "-"
			if match.MatchString(lines[j]) {
				mark = ":"
			}
			b.WriteString(firstLines(fmt.Sprintf("%s%s%d%s%s", name, mark, j+1, mark, lines[j]), 1))
			n++
		}
		shown = max(shown, i+q.context+1)
	}
	return n
}
