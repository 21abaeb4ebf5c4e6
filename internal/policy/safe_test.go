package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A snippet is one line of testdata/snippets.txt.
type snippet struct {
	line int
	safe bool
	argv []string
}

func snippets(t testing.TB) []snippet {
	t.Helper()
	b, err := os.ReadFile("testdata/snippets.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []snippet
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		if len(f) != 3 || f[0] != "safe" && f[0] != "not" {
			t.Fatalf("snippets.txt:%d: %q is not VERDICT SHELL SCRIPT", i+1, line)
		}
		s := snippet{line: i + 1, safe: f[0] == "safe"}
		switch script, ok := strings.CutPrefix(f[2], "json:"); {
		case f[1] == "argv":
			err = json.Unmarshal([]byte(f[2]), &s.argv)
		case ok:
			var text string
			err = json.Unmarshal([]byte(script), &text)
			s.argv = []string{f[1], "-lc", text}
		default:
			s.argv = []string{f[1], "-lc", script}
		}
		if err != nil {
			t.Fatalf("snippets.txt:%d: %v", i+1, err)
		}
		all = append(all, s)
	}
	return all
}

func TestSnippets(t *testing.T) {
	all := snippets(t)
	for _, s := range all {
		if got := Safe(s.argv); got != s.safe {
			t.Errorf("snippets.txt:%d: Safe(%q) = %v, want %v", s.line, s.argv, got, s.safe)
		}
	}
	if len(all) < 400 {
		t.Errorf("only %d snippets were read", len(all))
	}
}

// A command given as arguments and the same in a script are judged alike.
func TestArgumentsAndScriptsAgree(t *testing.T) {
	for _, s := range snippets(t) {
		if _, _, ok := shellScript(s.argv); ok || len(s.argv) == 0 {
			continue
		}
		script := quote(s.argv)
		if strings.Contains(script, "$'") {
			continue
		}
		if got := Safe([]string{"bash", "-c", script}); got != s.safe {
			t.Errorf("snippets.txt:%d: as the script %q: Safe = %v, want %v", s.line, script, got, s.safe)
		}
	}
}

func TestEveryPartOfAScriptCounts(t *testing.T) {
	for _, join := range []string{" && ", " || ", "; ", " | ", "\n", " # x\n"} {
		for _, s := range []string{"ls" + join + "rm x", "rm x" + join + "ls", "ls" + join + "ls" + join + "rm x" + join + "ls"} {
			if Safe([]string{"bash", "-c", s}) {
				t.Errorf("Safe(%q)", s)
			}
		}
		if s := "ls" + join + "cat x" + join + "pwd"; !Safe([]string{"bash", "-c", s}) {
			t.Errorf("not Safe(%q)", s)
		}
	}
}

// What a word means, quotes and escapes taken away; where a pattern begins is
// marked by a bar.
func TestWords(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`a b`, `a b`},
		{`"a\nb\$c\"d\\e"`, `a\nb$c"d\e`},
		{`'a\n$b'`, `a\n$b`},
		{`a\n\$\*`, `an$*`},
		{`a"b"'c'd`, `abcd`},
		{`"x$" "(a$|b$)" "5$ "`, `x$ (a$|b$) 5$ `},
		{`"" ''`, ` `},
		{`~/a`, `~/a`},
		{`a~b`, `a|~b`},
		{`src/*.go x?y [a] HEAD^`, `src/|*.go x|?y |[a] HEAD|^`},
		{`"*"*'?'`, `*|*?`},
		{`"~"x '='y`, `~x =y`},
	} {
		found, ok := simples("bash", "ls "+c.script, nil)
		if !ok || len(found) != 1 {
			t.Errorf("%s: not understood", c.script)
			continue
		}
		var got []string
		for _, w := range found[0].words[1:] {
			if !w.plain() {
				w.text = w.text[:w.fixed] + "|" + w.text[w.fixed:]
			}
			got = append(got, w.text)
		}
		if joined := strings.Join(got, " "); joined != c.want {
			t.Errorf("%s: words %q, want %q", c.script, joined, c.want)
		}
	}
}

// A script that is too long is not even parsed: the parser's stack would grow
// with it until the program dies.
func TestLongScriptsAreUnsafe(t *testing.T) {
	fits := "ls " + strings.Repeat("a", maxScript-3)
	if !Safe([]string{"bash", "-c", fits}) || Safe([]string{"bash", "-c", fits + "a"}) {
		t.Error("the limit is not where it should be")
	}
	for _, open := range []string{"(", "$(", "{ ", "\"$(", "if ", "a=(", "$((", "!", "`"} {
		if Safe([]string{"bash", "-c", strings.Repeat(open, 4_000_000/len(open))}) {
			t.Errorf("%q repeated is safe", open)
		}
	}
}

func TestInvalidTextIsUnsafe(t *testing.T) {
	for _, s := range []string{"ls \xff", "ls '\xc3'", "ls '\x00'", "ls '\r'", "ls '\x1b[0m'", "ls '\x7f'"} {
		if Safe([]string{"bash", "-c", s}) {
			t.Errorf("Safe(%q)", s)
		}
	}
}

// The safe snippets are run for real, with the environment that they would get,
// and must not change a thing.
func TestSafeSnippetsLeaveNoTrace(t *testing.T) {
	dir := workplace(t)
	before := picture(t, dir)
	env := Harden([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"})
	ran := 0
	for _, s := range snippets(t) {
		if _, err := exec.LookPath(firstOf(s)); !s.safe || err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
		cmd.Dir, cmd.Env = dir, env
		_ = cmd.Run() // grep finds nothing, rg may be missing: no matter
		cancel()
		ran++
		if after := picture(t, dir); after != before {
			t.Fatalf("snippets.txt:%d: %q changed something:\n%s\nbefore:\n%s", s.line, s.argv, after, before)
		}
	}
	if ran < 50 {
		t.Errorf("only %d were run", ran)
	}
}

func firstOf(s snippet) string {
	if len(s.argv) == 0 {
		return ""
	}
	return s.argv[0]
}

// workplace makes a directory with a few files under git.
func workplace(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "x\n", "b.txt": "y\n", "a b.txt": "z\n", "src/a.go": "package a\n", "go.mod": "module x\n", "README.md": "TODO\n"} {
		write(t, filepath.Join(dir, name), text)
	}
	runGit(t, dir, "init", "-q")
	runGit(t, dir, "add", ".")
	runGit(t, dir, "commit", "-q", "-m", "one")
	write(t, filepath.Join(dir, "src/a.go"), "package b\n")
	runGit(t, dir, "commit", "-q", "-a", "-m", "two")
	write(t, filepath.Join(dir, "a.txt"), "changed\n")
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "maintenance.auto=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TEMPLATE_DIR=",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// picture describes a tree: names, modes and times of change.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A script of 1.5 KB, as models write them when they look around.
func longScript() string {
	line := `cd src && rg -n "func (s \*Server)" --type go . | head -n 40 && sed -n '120,180p' internal/server/server.go; git log --oneline -n 5 -- 'a b' | cat` + "\n"
	return strings.Repeat(line, 1500/len(line)+1)[:1500/len(line)*len(line)]
}

func BenchmarkSafe(b *testing.B) {
	script := longScript()
	argv := []string{"bash", "-lc", script}
	if !Safe(argv) {
		b.Fatal("the script is not safe")
	}
	b.SetBytes(int64(len(script)))
	b.ReportAllocs()
	for b.Loop() {
		Safe(argv)
	}
}

func BenchmarkSafeOneCommand(b *testing.B) {
	argv := []string{"bash", "-lc", "git status --short"}
	b.ReportAllocs()
	for b.Loop() {
		Safe(argv)
	}
}
