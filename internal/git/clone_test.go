package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// state describes a working tree: what git says of it, and what its files hold.
func (s *site) state(dir string) string {
	s.t.Helper()
	out := s.plain(dir, "status", "--porcelain", "--branch") + "\n" + s.plain(dir, "for-each-ref", "refs/heads") + "\n" + s.plain(dir, "rev-parse", "HEAD")
	for _, name := range strings.Fields(s.plain(dir, "ls-files", "-co", "--exclude-standard")) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			text = []byte("(gone)")
		}
		out += "\n" + name + ": " + string(text)
	}
	return out
}

// What is cloned, changed and bundled is the same elsewhere.
func TestBundleMovesAWorkTree(t *testing.T) {
	s := newSite(t)
	s.write(filepath.Join(s.root, "b"), "2\n")
	s.write(filepath.Join(s.root, ".gitignore"), "*.o\n")
	s.plain(s.root, "add", ".")
	s.plain(s.root, "commit", "-q", "-m", "second")
	from := Source{URL: s.root}
	first, second := filepath.Join(s.dir, "first"), filepath.Join(s.dir, "second")
	commit, err := Clone(t.Context(), from, first, "fermata/1")
	if err != nil || commit != s.plain(s.root, "rev-parse", "HEAD") {
		t.Fatalf("%s, %v", commit, err)
	}
	s.write(filepath.Join(first, "c"), "committed\n")
	s.plain(first, "add", "c")
	s.plain(first, "commit", "-q", "-m", "third")
	s.plain(first, "branch", "other")
	s.write(filepath.Join(first, "a"), "changed\n")
	os.Remove(filepath.Join(first, "b"))
	s.write(filepath.Join(first, "new/file"), "untracked\n")
	s.write(filepath.Join(first, "x.o"), "ignored\n")
	for _, head := range []string{"fermata/1", "--detach"} {
		s.plain(first, "checkout", "-q", head)
		b, err := s.open(first).Bundle(t.Context(), commit, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(second)
		if _, err := Clone(t.Context(), Source{from.URL, commit}, second, "fermata/1"); err != nil {
			t.Fatal(err)
		}
		if err := Restore(t.Context(), second, b); err != nil {
			t.Fatal(err)
		}
		if got, want := s.state(second), s.state(first); got != want {
			t.Errorf("there:\n%s\nhere:\n%s", got, want)
		}
		if _, err := os.Stat(filepath.Join(second, "x.o")); err == nil {
			t.Error("an ignored file was moved")
		}
		s.plain(second, "fsck", "--strict")
	}
	if _, err := s.open(first).Bundle(t.Context(), commit, 100); !errors.Is(err, ErrTooMuch) {
		t.Errorf("a small limit: %v", err)
	}
}

func TestCloneNamesTheCommit(t *testing.T) {
	s := newSite(t)
	first := s.plain(s.root, "rev-parse", "HEAD")
	s.plain(s.root, "tag", "-a", "v1", "-m", "one")
	s.plain(s.root, "checkout", "-q", "-b", "topic/x")
	s.plain(s.root, "commit", "-q", "--allow-empty", "-m", "second")
	second := s.plain(s.root, "rev-parse", "HEAD")
	for ref, want := range map[string]string{"": second, "main": first, "v1": first, "topic/x": second, first: first, first[:10]: first} {
		commit, err := Clone(t.Context(), Source{"file://" + s.root, ref}, t.TempDir(), "w")
		if err != nil || commit != want {
			t.Errorf("%q: %s, %v, want %s", ref, commit, err, want)
		}
	}
	for _, ref := range []string{"nowhere", strings.Repeat("1", 40), "-q", "--upload-pack=" + s.program, "main:a"} {
		if commit, err := Clone(t.Context(), Source{"file://" + s.root, ref}, t.TempDir(), "w"); !errors.Is(err, ErrNoCommit) {
			t.Errorf("%q: %s, %v", ref, commit, err)
		}
	}
	if _, err := Clone(t.Context(), Source{"file://" + s.dir + "/nowhere", ""}, t.TempDir(), "w"); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a repository that does not exist: %v", err)
	}
	if marks := s.marks(); marks != "" {
		t.Errorf("these were run: %s", marks)
	}
}

func TestCheckURL(t *testing.T) {
	for _, good := range []string{"https://host/x.git", "ssh://git@host/x", "git@host:x/y.git", "file:///srv/x.git", "/srv/x.git"} {
		if err := CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "x", "../x", "-q", "--upload-pack=x", "ext::sh -c x", "fd::7", "-o:x", "https://u:secret@host/x", "ftp://host/x", "host:", "https://host/\nx"} {
		err := CheckURL(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// moved restores what a clone has beyond a commit in another clone, as the next machine does.
func (s *site) moved(dir, commit string) string {
	s.t.Helper()
	b, err := s.open(dir).Bundle(s.t.Context(), commit, 1<<20)
	if err != nil {
		s.t.Fatal(err)
	}
	again := filepath.Join(s.dir, "again")
	if _, err := Clone(s.t.Context(), Source{s.root, commit}, again, "w"); err != nil {
		s.t.Fatal(err)
	}
	if err := Restore(s.t.Context(), again, b); err != nil {
		s.t.Fatal(err)
	}
	return again
}

// A repository that is cloned, changed by commands, bundled and restored runs nothing of its own.
func TestNothingIsRunByAClone(t *testing.T) {
	s := newSite(t)
	var settings strings.Builder // the server's git reads those of the source, and refuses nonsense
	for _, key := range programs {
		writeSetting(&settings, key, s.program)
	}
	s.hostile(settings.String())
	dir := filepath.Join(s.dir, "clone")
	commit, err := Clone(t.Context(), Source{URL: s.root}, dir, "w")
	if err != nil {
		t.Fatal(err)
	}
	s.poison(filepath.Join(dir, ".git"), s.settings())
	s.write(filepath.Join(dir, "a"), "changed\n")
	s.write(filepath.Join(dir, "new"), "new\n")
	again := s.moved(dir, commit)
	if text, _ := os.ReadFile(filepath.Join(again, "a")); string(text) != "changed\n" {
		t.Errorf("a holds %q", text)
	}
	if marks := s.marks(); marks != "" {
		t.Errorf("these were run:\n%s", marks)
	}
}

// Settings of the user say how to fetch; to what is checked out they do nothing, and nothing that they name is run.
func TestUserSettingsStayOutOfAClone(t *testing.T) {
	s := newSite(t)
	template, hooks := filepath.Join(s.dir, "template"), filepath.Join(s.dir, "hooks")
	for _, dir := range []string{hooks, filepath.Join(template, "hooks")} {
		for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
			hook := filepath.Join(dir, name)
			s.write(hook, "#!/bin/sh\nexec '"+s.program+"' quit hook\n")
			if err := os.Chmod(hook, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.write(filepath.Join(s.dir, "attributes"), "* filter=mine\n")
	s.write(filepath.Join(s.dir, "gitconfig"), "[core]\n\tautocrlf = true\n\tattributesFile = "+s.dir+"/attributes\n\thooksPath = "+hooks+"\n\tfsmonitor = "+s.program+" quit\n"+
		"[filter \"mine\"]\n\tsmudge = "+s.program+"\n\tclean = "+s.program+"\n"+
		"[init]\n\ttemplateDir = "+template+"\n"+
		"[url \""+s.root+"\"]\n\tinsteadOf = https://example.invalid/x.git\n")
	dir := filepath.Join(s.dir, "clone")
	commit, err := Clone(t.Context(), Source{URL: "https://example.invalid/x.git"}, dir, "w")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); string(text) != "1\n" {
		t.Errorf("a holds %q, %v", text, err)
	}
	s.write(filepath.Join(dir, "new"), "new\n")
	again := s.moved(dir, commit)
	if text, err := os.ReadFile(filepath.Join(again, "new")); string(text) != "new\n" {
		t.Errorf("new holds %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "[ac]*", ".git", "hooks", "*")); len(left) > 0 { // of both clones
		t.Errorf("hooks were taken over: %q", left)
	}
	if marks := s.marks(); marks != "" {
		t.Errorf("these were run:\n%s", marks)
	}
}
