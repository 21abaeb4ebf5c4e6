package tool

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// patience is how long a picture may take in tests: the machine may be busy.
const patience = 10 * time.Minute

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// newRepo is a repository with a commit, something staged and something ignored.
func newRepo(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_SYSTEM", "/dev/null")
	dir := realDir(t)
	runGit(t, dir, "init", "-q")
	put(t, dir, ".gitignore", "*.o\n")
	put(t, dir, "a", "1\n")
	runGit(t, dir, "add", ".")
	runGit(t, dir, "commit", "-q", "-m", "first")
	put(t, dir, "staged", "s\n")
	runGit(t, dir, "add", "staged")
	put(t, dir, "loose", "l\n")
	put(t, dir, "x.o", "object\n")
	return dir
}

// state is all that git knows of a repository, which pictures must not change.
func state(t *testing.T, dir string) string {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	return string(index) + runGit(t, dir, "status", "--porcelain") + runGit(t, dir, "count-objects", "-v")
}

func snapshots(t *testing.T) *Snapshots {
	t.Helper()
	return &Snapshots{Dir: filepath.Join(realDir(t), "snapshots"), Limit: patience}
}

// inTurn runs scripts, as commands that may write, in one turn, and returns the
// last diff of it.
func inTurn(t *testing.T, s *Snapshots, dir string, h Host, scripts ...string) *protocol.TurnDiff {
	t.Helper()
	sh1 := shell(t)
	sh1.Changes = &Changes{Snapshots: s}
	sh1.Patch = &Patch{Changes: sh1.Changes}
	var last *protocol.TurnDiff
	for _, script := range scripts {
		a := sh(script)
		if strings.HasPrefix(script, "*** ") {
			a = params{"command": []string{"apply_patch", script}}
		}
		res := sh1.Run(t.Context(), call(h, dir, a))
		if res.Output.Failed {
			t.Fatalf("%s: %+v", script, res.Output)
		}
		if res.Diff != nil {
			last = res.Diff
		}
	}
	return last
}

func TestSnapshotLeavesTheRepositoryAlone(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	before := state(t, dir)
	d := inTurn(t, s, dir, &fakeHost{}, "echo 2 > a", "ls", "echo n > new; rm loose; echo o > y.o")
	if d == nil || d.Trees == nil || d.Trees.Root != dir || d.Trees.Before == d.Trees.After {
		t.Fatalf("diff %+v", d)
	}
	for _, want := range []string{"-1\n+2\n", "+++ b/new\n", "--- a/loose\n"} {
		if !strings.Contains(d.Diff, want) {
			t.Errorf("%q is missing in\n%s", want, d.Diff)
		}
	}
	if strings.Contains(d.Diff, "y.o") || strings.Contains(d.Diff, "staged") {
		t.Errorf("in the diff is what was ignored, or did not change:\n%s", d.Diff)
	}
	put(t, dir, "a", "1\n")
	put(t, dir, "loose", "l\n")
	os.Remove(filepath.Join(dir, "new"))
	if d := cmp.Diff(before, state(t, dir)); d != "" {
		t.Errorf("the repository changed (-before +after):\n%s", d)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "run-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Commands can read the objects of snapshots, so nothing that is secret gets into them.
func TestSnapshotIsWithoutSecrets(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	s.Secret = func() []string { return []string{filepath.Join(dir, "loose")} }
	r, tree, err := s.take(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	paths, err := r.TreePaths(t.Context(), tree)
	if diff := cmp.Diff([]string{".gitignore", "a", "staged"}, paths); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
}

// A file that changed in the same instant in which the index was written looks
// as if it had not; git looks twice at such files, if it knows the instant.
func TestSnapshotSeesAChangeInTheSameInstant(t *testing.T) {
	dir := newRepo(t)
	runGit(t, dir, "config", "core.trustctime", "false")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	same := func(names ...string) {
		for _, name := range names {
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	same("a")
	runGit(t, dir, "add", "a")
	put(t, dir, "a", "2\n")
	same("a", ".git/index")
	r, tree, err := snapshots(t).take(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := r.Blob(t.Context(), tree+":a"); err != nil || text != "2\n" {
		t.Errorf("in the picture a is %q, %v", text, err)
	}
}

// A turn in which nothing changes has no diff, and no picture is taken for a
// command that only looks.
func TestSnapshotOnlyWhenNeeded(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	if d := inTurn(t, s, dir, &fakeHost{}, "ls", "cat a"); d != nil {
		t.Errorf("diff of looking: %+v", d)
	}
	if _, err := os.Stat(s.Dir); err == nil {
		t.Error("a picture was taken for commands that only look")
	}
	if d := inTurn(t, s, dir, &fakeHost{}, "true > /dev/null", "echo 1 > a"); d != nil {
		t.Errorf("diff of nothing: %+v", d)
	}
}

// Patches are in the diff once, wherever they wrote.
func TestTurnDiffOfPatchesAndCommands(t *testing.T) {
	dir, out := newRepo(t), elsewhere(t)
	h := &fakeHost{}
	d := inTurn(t, snapshots(t), dir, h, update("a", "1", "2"), add("z.o"), add(filepath.Join(out, "far")), "echo 3 >> a")
	want := "diff --git a/a b/a\nindex d00491f..8e8b7a2 100644\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-1\n+2\n+3\n"
	if !strings.Contains(stripIndex(d.Diff), stripIndex(want)) || strings.Count(d.Diff, "a/a ") != 1 ||
		!strings.Contains(d.Diff, "+++ b/z.o\n") || !strings.Contains(d.Diff, "/far\n") {
		t.Errorf("diff\n%s", d.Diff)
	}
}

// stripIndex leaves out the lines that name objects.
func stripIndex(diff string) string {
	var b strings.Builder
	for l := range strings.Lines(diff) {
		if !strings.HasPrefix(l, "index ") {
			b.WriteString(l)
		}
	}
	return b.String()
}

func notices(h *fakeHost) (texts []string) {
	for _, e := range h.events {
		if n, ok := e.(*protocol.Notice); ok {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

func TestSnapshotThatTakesTooLong(t *testing.T) {
	dir, s, h := newRepo(t), snapshots(t), &fakeHost{}
	s.Limit = time.Nanosecond
	if d := inTurn(t, s, dir, h, "echo 2 > a", "echo 3 > a"); d != nil {
		t.Errorf("diff %+v", d)
	}
	if n := notices(h); len(n) != 1 || !strings.Contains(n[0], "no snapshot was taken") || !strings.Contains(n[0], "longer than 1ns") {
		t.Errorf("notices %q", n)
	}
}

func TestNoSnapshotOutsideGit(t *testing.T) {
	dir, h := realDir(t), &fakeHost{}
	d := inTurn(t, snapshots(t), dir, h, "echo 2 > a", add("b"))
	if d == nil || d.Trees != nil || !strings.Contains(d.Diff, "+++ b/b\n") || strings.Contains(d.Diff, "b/a") || len(notices(h)) > 0 {
		t.Errorf("diff %+v, notices %q", d, notices(h))
	}
}

// A stopped command is in the diff as well.
func TestSnapshotOfAStoppedCommand(t *testing.T) {
	dir := newRepo(t)
	s := shell(t)
	s.Changes = &Changes{Snapshots: snapshots(t)}
	ctx, cancel := context.WithCancel(t.Context())
	h := &fakeHost{onWrite: func(string) { cancel() }}
	res := s.Run(ctx, call(h, dir, sh("echo 2 > a; echo written; sleep 600")))
	if !res.Output.Aborted || res.Diff == nil || !strings.Contains(res.Diff.Diff, "-1\n+2\n") {
		t.Errorf("output %+v, diff %+v", res.Output, res.Diff)
	}
}

// What is too long to read is cut at a line.
func TestLongDiffIsCut(t *testing.T) {
	long := strings.Repeat("+line\n", mostDiff/6+10)
	got := shorten(long)
	if len(got) > mostDiff+100 || !strings.HasSuffix(got, "+line\n… the rest of this diff is left out\n") || shorten("a\xff") != "a\uFFFD" {
		t.Errorf("%d bytes, at the end %q", len(got), got[len(got)-80:])
	}
}

func TestGitTakeBack(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	put(t, dir, ".gitattributes", "crlf text eol=crlf\n")
	put(t, dir, "crlf", "1\r\n2\r\n")
	put(t, dir, "run", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(dir, "run"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "deep/er"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "deep/er/f", "f\n")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "more")
	put(t, dir, "a", "edited before the turn\n")
	before := work(t, dir)
	d := inTurn(t, s, dir, &fakeHost{}, "mkdir -p new/dir; echo n > new/dir/n; echo 2 > a; rm loose link; printf '1\\r\\n' > crlf; chmod -x run; chmod +x a",
		"rm -r staged deep; echo done > 'name with space'; echo late > a")
	b, err := s.TakeBack(t.Context(), *d.Trees)
	if err != nil {
		t.Fatal(err)
	}
	plan, covered := b.Plan, b.Covered
	if !cmp.Equal(b.Modes, []string{filepath.Join(dir, "run")}) {
		t.Errorf("modes that are left: %v", b.Modes)
	}
	if !covered(filepath.Join(dir, "a")) || !covered(filepath.Join(dir, "new/dir/n")) || covered(filepath.Join(dir, "x.o")) || covered("/a") || covered(dir) {
		t.Error("what is covered")
	}
	if err := patch.Apply(t.Context(), patch.OS{}, plan, plan.Record(), func(patch.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	before["run"] = strings.TrimPrefix(before["run"], "runs: ") // its mode is left
	if d := cmp.Diff(before, work(t, dir)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "a" {
		t.Errorf("the link is %q, %v", target, err)
	}
}

// work is what is in a working tree: names, whether they can be run, contents.
func work(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, text := range files(t, dir) {
		if strings.HasPrefix(name, ".git/") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o100 != 0 {
			text = "runs: " + text
		}
		found[name] = text
	}
	return found
}

func TestGitTakeBackRefuses(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	d := inTurn(t, s, dir, &fakeHost{}, "echo 2 > a; rm loose; echo n > new")
	put(t, dir, "other", "does not matter\n")
	put(t, dir, "loose", "is back\n")
	put(t, dir, "new", "mine\n")
	_, err := s.TakeBack(t.Context(), *d.Trees)
	var stale *ChangedSinceError
	if !errors.As(err, &stale) || !cmp.Equal(stale.Paths, []string{filepath.Join(dir, "loose"), filepath.Join(dir, "new")}) {
		t.Errorf("got %v", err)
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeBack(t.Context(), *d.Trees); err == nil || !strings.Contains(err.Error(), "snapshots are gone") {
		t.Errorf("without the objects: %v", err)
	}
	if _, err := s.TakeBack(t.Context(), protocol.TreeRange{Root: realDir(t)}); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("outside git: %v", err)
	}
}

func TestGitTakeBackOfARepositoryInside(t *testing.T) {
	dir, s := newRepo(t), snapshots(t)
	d := inTurn(t, s, dir, &fakeHost{}, "git init -q sub && cd sub && echo x > x && git add x && git -c user.name=t -c user.email=t@t commit -q -m x")
	if _, err := s.TakeBack(t.Context(), *d.Trees); !errors.Is(err, errModule) {
		t.Errorf("got %v", err)
	}
}

func TestFileMode(t *testing.T) {
	for _, tt := range []struct {
		now  *patch.Content
		git  string
		want os.FileMode
	}{
		{nil, "100644", 0o644},
		{nil, git.ModeExec, 0o755},
		{&patch.Content{Mode: 0o600}, git.ModeExec, 0o700},
		{&patch.Content{Mode: 0o750}, "100644", 0o640},
	} {
		if got := fileMode(tt.now, tt.git); got != tt.want {
			t.Errorf("%+v, %s: %o, want %o", tt.now, tt.git, got, tt.want)
		}
	}
}
