package work_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/git"
)

// In a clone of the repository that a node is to fetch, a name means what it means to git there: a local branch, a part of
// a commit's name. Elsewhere it is left to the node.
func TestCommitOf(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const url = "https://example.invalid/app.git"
	run("init", "-q", "-b", "main")
	run("remote", "add", "origin", url)
	run("commit", "-q", "--allow-empty", "-m", "first")
	first := run("rev-parse", "HEAD")
	run("checkout", "-q", "-b", "topic")
	run("commit", "-q", "--allow-empty", "-m", "second")
	second := run("rev-parse", "HEAD")
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cwd, url, ref, want string }{
		{"a branch that is only here", dir, url, "topic", second},
		{"what git calls it", below, url, "topic~1", first},
		{"a part of its name", dir, url, first[:8], first},
		{"HEAD is the one here", dir, url, "HEAD", second},
		{"no name", dir, url, "", ""},
		{"not known here", dir, url, "release", "release"},
		{"no option", dir, url, "--all", "--all"},
		{"a clone of another repository", dir, "https://example.invalid/other.git", "topic", "topic"},
		{"no clone", t.TempDir(), url, "main", "main"},
	} {
		a := &app.App{Config: &config.Config{Home: t.TempDir()}, Cwd: c.cwd}
		if got := work.CommitOf(t.Context(), a, git.Source{URL: c.url, Ref: c.ref}); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.name, c.ref, got, c.want)
		}
	}
}
