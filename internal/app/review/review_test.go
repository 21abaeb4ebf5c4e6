package review

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/git"
)

func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		target      Target
		title, want string // what follows the task
	}{
		{Target{}, "current changes", uncommitted},
		{Target{Uncommitted: true, Instructions: "races"}, "current changes", uncommitted + "\n\nLook at this in particular: races"},
		{Target{Instructions: "races"}, "races", "those that the instructions name, or else " + uncommitted + "\n\nThe instructions: races"},
		{Target{Base: "main"}, "changes against main", "those of this branch since it left main (git diff main...HEAD)."},
		{Target{Commit: "a1b2", Instructions: "races"}, "commit a1b2", "those of the commit a1b2 (git show a1b2).\n\nLook at this in particular: races"},
		{Target{Name: "v1"}, "v1", "those that v1 names: a commit (git show v1), or a branch that this one began from (git diff v1...HEAD)."},
	} {
		if got := strings.TrimPrefix(c.target.Prompt(), task); got != c.want || c.target.Title() != c.title {
			t.Errorf("%+v: title %q, prompt\n%s\nwant %q\n%s", c.target, c.target.Title(), got, c.title, c.want)
		}
	}
}

// A site is a repository on the branch "work", which has a commit more than "main".
type site struct {
	*git.Repo

	t    *testing.T
	root string
}

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_SYSTEM", "/dev/null")
	s := &site{t: t, root: t.TempDir()}
	s.git("init", "-q", "-b", "main")
	s.git("commit", "-q", "--allow-empty", "-m", "first")
	s.git("update-ref", "refs/remotes/origin/release", "HEAD")
	s.git("checkout", "-q", "-b", "work")
	s.git("commit", "-q", "--allow-empty", "-m", "second")
	var err error
	if s.Repo, err = git.Open(t.Context(), git.Options{Dir: s.root, Scratch: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *site) git(args ...string) {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// What is not there is not reviewed: the error names the target and what to do.
func TestCheck(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		target    Target
		err, hint string
		nothing   bool
	}{
		{Target{Base: "main"}, "", "", false},
		{Target{Commit: "HEAD~1"}, "", "", false},
		{Target{Instructions: "the parser"}, "", "", false},
		{Target{}, "nothing to review: nothing differs from the last commit", "--base BRANCH reviews what this branch has changed, --commit SHA a commit", true},
		{Target{Uncommitted: true, Instructions: "x"}, "nothing to review: nothing differs from the last commit", "--base BRANCH reviews what this branch has changed, --commit SHA a commit", true},
		{Target{Base: "work"}, "nothing to review: this branch has no commit that work does not have", "--uncommitted reviews what is not committed", true},
		{Target{Base: "mian"}, `there is no branch "mian"`, "did you mean main?", false},
		{Target{Base: "release"}, `there is no branch "release"`, "did you mean origin/release?", false},
		{Target{Commit: "0123abcd"}, `there is no commit "0123abcd"`, "git branch --all lists the branches, git log the commits", false},
		{Target{Commit: "--all"}, `there is no commit "--all"`, "git branch --all lists the branches, git log the commits", false},
	} {
		err := c.target.Check(t.Context(), s.Repo)
		if c.err == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.target, err)
			}
			continue
		}
		var got *app.Error
		if !errors.As(err, &got) || got.Error() != c.err || got.Hint != c.hint || errors.Is(err, ErrNothing) != c.nothing || got.Usage == c.nothing {
			t.Errorf("%+v: %v, %+v", c.target, err, got)
		}
	}
	if err := os.WriteFile(filepath.Join(s.root, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Target{}).Check(t.Context(), s.Repo); err != nil {
		t.Errorf("with a new file: %v", err)
	}
}
