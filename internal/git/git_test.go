package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A site is a repository, and a canary: a program that leaves a mark when it is run.
type site struct {
	t                           *testing.T
	dir, root, scratch, program string
}

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, dir, filepath.Join(dir, "work tree"), filepath.Join(dir, "scratch"), filepath.Join(dir, "canary")}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "gitconfig"))
	t.Setenv("GIT_CONFIG_SYSTEM", "/dev/null")
	t.Setenv("GIT_TEMPLATE_DIR", "") // no examples of hooks
	// What it is given to convert, it passes on: git is not to notice.
	s.write(s.program, "#!/bin/sh\necho \"$0 $*\" >> '"+filepath.Join(dir, "marks")+"'\n[ \"$1\" = quit ] || cat\n")
	if err := os.Chmod(s.program, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.root, "a"), "1\n")
	s.plain(s.root, "init", "-q", "-b", "main")
	s.plain(s.root, "add", "a")
	s.plain(s.root, "commit", "-q", "-m", "first")
	return s
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

// plain runs git as a person would.
func (s *site) plain(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.try(dir, args...)
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (s *site) try(dir string, args ...string) (string, error) {
	settings := []string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "maintenance.auto=false", "-c", "core.fsync=none"}
	cmd := exec.Command("git", append(settings, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// marks returns what the canary left, and forgets it.
func (s *site) marks() string {
	name := filepath.Join(s.dir, "marks")
	b, _ := os.ReadFile(name)
	os.Remove(name)
	return string(b)
}

func (s *site) open(dir string) *Repo {
	s.t.Helper()
	r, err := Open(s.t.Context(), Options{Dir: dir, Scratch: s.scratch})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(r.Close)
	return r
}

// everything does all that fermata does with a repository.
func (s *site) everything(dir string) (diff string, errs error) {
	r := s.open(dir)
	ctx := s.t.Context()
	keep := func(_ any, err error) { errs = errors.Join(errs, err) }
	Branch(dir)
	keep(r.Files(ctx))
	keep(r.Untracked(ctx))
	keep(r.Diff(ctx, "HEAD"))
	_, _ = r.RemoteBase(ctx) // there may be none
	keep(r.Commit(ctx, "HEAD"))
	keep(r.Branches(ctx))
	keep(r.Ahead(ctx, "HEAD"))
	before, err := r.WriteTree(ctx)
	keep(before, err)
	s.write(filepath.Join(dir, "later"), "2\n")
	after, err := r.WriteTree(ctx)
	keep(after, err)
	keep(r.DiffTrees(ctx, before, after))
	list, err := r.ChangedPaths(ctx, before, after)
	keep(list, err)
	keep(r.TreePaths(ctx, after))
	for _, e := range list {
		keep(r.Blob(ctx, e.Blob2))
		if _, err := r.Checkout(ctx, after, e.Path); err != nil && !errors.Is(err, ErrFilter) {
			keep(nil, err)
		}
	}
	diff, err = s.open(dir).DiffAll(ctx, "HEAD", 0)
	keep(diff, err)
	return diff, errs
}

func TestReads(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, ".gitignore"), "*.o\n")
	s.write(filepath.Join(s.root, "a"), "2\n")
	s.write(filepath.Join(s.root, "sub/new file"), "n\n")
	s.write(filepath.Join(s.root, "x.o"), "ignored\n")
	before := s.plain(s.root, "status", "--porcelain") + s.plain(s.root, "count-objects", "-v")
	r := s.open(filepath.Join(s.root, "sub"))
	if r.Root != s.root {
		t.Errorf("the root is %q", r.Root)
	}
	if files, err := r.Files(t.Context()); err != nil || !slices.Equal(files, []string{"new file"}) {
		t.Errorf("files %q, %v", files, err)
	}
	diff, err := r.Diff(t.Context(), "HEAD")
	if err != nil || !strings.Contains(diff, "-1\n+2\n") || strings.Contains(diff, "new file") {
		t.Errorf("%v\n%s", err, diff)
	}
	all, err := r.DiffAll(t.Context(), "HEAD", 0)
	if err != nil || !strings.Contains(all, "-1\n+2\n") || !strings.Contains(all, "+++ b/sub/new file\t\n@@ -0,0 +1 @@\n+n\n") || strings.Contains(all, "x.o") {
		t.Errorf("%v\n%s", err, all)
	}
	if cut, err := r.DiffAll(t.Context(), "HEAD", 10); !errors.Is(err, ErrTooMuch) || cut != all[:10] {
		t.Errorf("%v, %q", err, cut)
	}
	r.Close()
	if after := s.plain(s.root, "status", "--porcelain") + s.plain(s.root, "count-objects", "-v"); after != before {
		t.Errorf("the repository changed:\n%s\nwas\n%s", after, before)
	}
	if left, _ := os.ReadDir(s.scratch); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Files that are left out are in no diff and no tree, tracked or not; nothing of them is kept in the objects.
func TestFilesThatAreLeftOut(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, "a"), "sesame\n")
	s.write(filepath.Join(s.root, "sub/[token]*"), "sesame\n")
	s.write(filepath.Join(s.root, "sub/token"), "new\n")
	r, err := Open(t.Context(), Options{
		Dir: filepath.Join(s.root, "sub"), Scratch: s.scratch, Objects: s.scratch,
		Without: []string{filepath.Join(s.root, "a"), filepath.Join(s.root, "sub/[token]*"), "/elsewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	diff, err := r.Diff(t.Context(), "HEAD")
	if err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	all, err := r.DiffAll(t.Context(), "HEAD", 0)
	if err != nil || strings.Contains(all, "sesame") || !strings.Contains(all, "+new\n") {
		t.Errorf("%v\n%s", err, all)
	}
	tree, err := r.WriteTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.Blob(t.Context(), tree+":a"); err != nil || text != "1\n" {
		t.Errorf("a tracked file is %q in the tree, %v", text, err)
	}
	if paths, err := r.TreePaths(t.Context(), tree); err != nil || !slices.Equal(paths, []string{"a", "sub/token"}) {
		t.Errorf("the tree holds %q, %v", paths, err)
	}
	sum := strings.TrimSpace(s.plain(s.root, "hash-object", "a"))
	if _, err := r.Blob(t.Context(), sum); err == nil {
		t.Error("the objects hold a file that is left out")
	}
}

// Settings that say how to read a repository are taken over.
func TestSettingsThatAreKept(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.dir, "my ignore"), "*.mine\n")
	s.plain(s.root, "config", "--global", "core.excludesFile", filepath.Join(s.dir, "my ignore"))
	s.write(filepath.Join(s.root, ".git/info/exclude"), "*.local\n")
	s.plain(s.root, "config", "core.autocrlf", "true")
	s.plain(s.root, "config", "--add", "branch.ma\"in\\.remote", "a \"quoted\\ name\t")
	for _, name := range []string{"a.mine", "a.local"} {
		s.write(filepath.Join(s.root, name), "x\n")
	}
	s.write(filepath.Join(s.root, "a"), "1\r\n")
	diff, err := s.everything(s.root)
	if err != nil || strings.Contains(diff, "mine") || strings.Contains(diff, "local") || strings.Contains(diff, "-1") {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestRemoteBase(t *testing.T) {
	s := newSite(t)
	if _, err := s.open(s.root).RemoteBase(t.Context()); !errors.Is(err, ErrNoRemote) {
		t.Errorf("without a remote: %v", err)
	}
	remote := filepath.Join(s.dir, "remote.git")
	s.plain(s.dir, "init", "-q", "--bare", remote)
	s.plain(s.root, "remote", "add", "far", remote)
	s.plain(s.root, "push", "-q", "-u", "far", "main")
	want := s.plain(s.root, "rev-parse", "HEAD")
	s.plain(s.root, "commit", "-q", "--allow-empty", "-m", "not pushed")
	if got, err := s.open(s.root).RemoteBase(t.Context()); err != nil || got != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}

// Linked worktrees, submodules, shared indexes, other hashes and packed
// references are read like any repository.
func TestFormsOfRepositories(t *testing.T) {
	s := newSite(t)
	linked := filepath.Join(s.dir, "linked")
	s.plain(s.root, "worktree", "add", "-q", "-b", "side", linked)
	s.plain(s.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", s.root, "module")
	s.plain(s.root, "commit", "-q", "-m", "module")
	s.plain(s.root, "pack-refs", "--all")
	shared := filepath.Join(s.dir, "shared:index")
	s.plain(s.dir, "clone", "-q", s.root, shared)
	s.plain(shared, "update-index", "--split-index")
	sha256 := filepath.Join(s.dir, "sha256")
	s.plain(s.dir, "init", "-q", "-b", "side", "--object-format=sha256", sha256)
	s.write(filepath.Join(sha256, "a"), "1\n")
	s.plain(sha256, "add", "a")
	s.plain(sha256, "commit", "-q", "-m", "first")
	for dir, branch := range map[string]string{linked: "side", s.root: "main", filepath.Join(s.root, "module"): "main", shared: "main", sha256: "side"} {
		s.write(filepath.Join(dir, "a"), "changed\n")
		diff, err := s.everything(dir)
		if err != nil || !strings.Contains(diff, "-1\n+changed\n") || !strings.Contains(diff, "+++ b/later\n") {
			t.Errorf("%s: %v\n%s", dir, err, diff)
		}
		if got := Branch(dir); got != branch {
			t.Errorf("%s: on branch %q, want %q", dir, got, branch)
		}
	}
	s.plain(shared, "checkout", "-q", "--detach")
	if got, want := Branch(shared), s.plain(shared, "rev-parse", "--short", "HEAD"); got != want {
		t.Errorf("detached: %q, want %q", got, want)
	}
}

func TestFindNothing(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "gitdir: nowhere\n", "something else\n"} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, ".git"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if l, err := Find(dir); !errors.Is(err, ErrNotFound) || Branch(dir) != "" {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
}

// What a killed process left is removed some day.
func TestStaleShadowsAreRemoved(t *testing.T) {
	s := newSite(t)
	old, young := filepath.Join(s.scratch, shadowPrefix+"old"), filepath.Join(s.scratch, shadowPrefix+"young")
	s.write(filepath.Join(old, "config"), "")
	s.write(filepath.Join(young, "config"), "")
	at := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(old, at, at); err != nil {
		t.Fatal(err)
	}
	s.open(s.root)
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("the young one is gone")
	}
}

// How often git is started for a comparison does not depend on how many files there are.
func TestDiffAllStartsAFewGits(t *testing.T) {
	s := newSite(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(s.dir, "started")
	counting := filepath.Join(s.dir, "bin", "git")
	s.write(counting, "#!/bin/sh\necho \"$*\" >> '"+started+"'\nexec '"+real+"' \"$@\"\n")
	if err := os.Chmod(counting, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(counting)+":"+os.Getenv("PATH"))
	r := s.open(s.root)
	count := func() int {
		t.Helper()
		if err := os.RemoveAll(started); err != nil {
			t.Fatal(err)
		}
		if _, err := r.DiffAll(t.Context(), "HEAD", 0); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(started)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	few := count()
	for i := range 30 {
		s.write(filepath.Join(s.root, "new", string(rune('a'+i))), "x\n")
	}
	if many := count(); few == 0 || many != few {
		t.Errorf("%d gits without new files, %d with 30", few, many)
	}
}
