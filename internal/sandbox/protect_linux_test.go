package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
)

// TestNamesAreFixed has a workspace in a directory that can be written too. Whoever
// could move the workspace aside could write its repository under another name,
// and move it back.
func TestNamesAreFixed(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	for _, script := range []string{
		`mv $UPPER/ws $UPPER/x`, `mv $UPPER $TOP/x`, `cd $UPPER && mv ws x`, `mkdir $TOP/x && t exchange $TOP/x $UPPER`,
		`rm -rf $UPPER/ws/.git`, `rm -rf $UPPER/ws`, `rm -rf $UPPER`, `mkdir $UPPER/x && t exchange $UPPER/x $UPPER/ws`,
		`ln -s x $TOP/y && t exchange $TOP/y $UPPER`,
	} {
		w := newWorld(t)
		upper := filepath.Join(w.outside, "upper")
		must(t, os.Mkdir(upper, 0o755))
		must(t, os.Rename(w.ws, filepath.Join(upper, "ws")))
		w.ws = filepath.Join(upper, "ws")
		policy := onlyWorkspace()
		policy.WritableRoots = []string{w.outside}
		c, err := newWith(ability, policy, Place{Cwd: w.ws})
		must(t, err)
		git := filepath.Join(w.ws, ".git")
		before := treeOf(t, git)
		r, out := a.run(t, w, c, "", script, "UPPER="+upper, "TOP="+w.outside)
		if after := treeOf(t, git); r.ExitCode == 0 || after != before {
			t.Errorf("%s: exit %d %s, repository %q, was %q", script, r.ExitCode, out, after, before)
		}
	}
}

// treeOf lists what is in a directory.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(names, " ")
}

// TestOtherRepositories protects those that are not a plain directory.
func TestOtherRepositories(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	needs(t, "git")
	for _, c := range []struct {
		name, setup string
		attacks     []string // one after the other
	}{
		{"worktree", `git worktree add -q $WS/wt`, []string{
			`echo gitdir: /x > wt/.git`, `rm wt/.git`, `echo x > $REPO/.git/worktrees/wt/HEAD`, `echo x > $REPO/.git/hooks/x`,
		}},
		{"link", `mkdir $WS/wt && mv .git $WS/git && ln -s ../git $WS/wt/.git`, []string{
			`echo x > wt/.git/hooks/x`, `echo x > git/hooks/x`, `rm wt/.git`, `mv wt/.git wt/x`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ability := range []Ability{best, noMounts} {
				w := newWorld(t)
				must(t, os.RemoveAll(filepath.Join(w.ws, ".git")))
				r, out := a.run(t, w, nil, "", `set -e; git init -q repo && cd repo && mkdir -p .git/hooks
					git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x; `+c.setup, "REPO="+w.ws+"/repo")
				if r.ExitCode != 0 {
					t.Fatal(out)
				}
				policy := onlyWorkspace()
				policy.WritableRoots = []string{w.ws}
				con, err := newWith(ability, policy, Place{Cwd: filepath.Join(w.ws, "wt")})
				must(t, err)
				script := "status() { git -C wt status >/dev/null || echo bad repository $1; }; status before\n"
				for i, attack := range c.attacks {
					script += fmt.Sprintf("(%s) 2>/dev/null && echo escaped by attack %d\n", attack, i)
				}
				script += "status after"
				if _, out = a.run(t, w, con, "", script, "REPO="+w.ws+"/repo"); out != "" {
					t.Errorf("mounts %q: %s", ability.mounts(), out)
				}
			}
		})
	}
}

// TestGit shows what git can do in a repository that is read-only.
func TestGit(t *testing.T) {
	a := newAgent(t)
	needs(t, "git")
	w := newWorld(t)
	must(t, os.RemoveAll(filepath.Join(w.ws, ".git")))
	c := w.confinement(t, canConfine(t), onlyWorkspace())
	identity := "git config user.name a; git config user.email a@example.com\n"
	if r, out := a.run(t, w, nil, "", "set -e; git init -q .\n"+identity+"git add file; git commit -q -m one; echo more >> file"); r.ExitCode != 0 {
		t.Fatal(out)
	}
	if got := c.Appeared(); len(got) != 1 {
		t.Errorf("appeared: %q, want the new repository", got)
	}

	c = w.confinement(t, canConfine(t), onlyWorkspace())
	r, out := a.run(t, w, c, "", "git status --short file && git diff --stat && git log --oneline | wc -l")
	if r.ExitCode != 0 || !strings.Contains(out, " M file") {
		t.Errorf("exit %d: %s", r.ExitCode, out)
	}
	r, out = a.run(t, w, c, "", "git commit -a -m two")
	if r.ExitCode == 0 || !strings.Contains(out, "Read-only file system") {
		t.Errorf("commit: exit %d: %s", r.ExitCode, out)
	}
	if what, denied := c.Denied(Attempt{Dir: w.ws, Result: r, Output: out}); !denied || !strings.Contains(what, ".git/index.lock") {
		t.Errorf("commit was denied: %v %q", denied, what)
	}

	policy := onlyWorkspace()
	policy.WritableRoots = []string{filepath.Join(w.ws, ".git")}
	r, out = a.run(t, w, w.confinement(t, canConfine(t), policy), "", "git commit -q -a -m two && git status --short file")
	if r.ExitCode != 0 || out != "" {
		t.Errorf("commit in a writable repository: exit %d: %s", r.ExitCode, out)
	}
}

// TestPartOfRepositoryIsWritable has a root inside a protected path.
func TestPartOfRepositoryIsWritable(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		policy := onlyWorkspace()
		policy.WritableRoots = []string{filepath.Join(w.ws, ".git", "objects")}
		_, out := a.run(t, w, w.confinement(t, ability, policy), "", `exec 2>/dev/null
			echo x > .git/objects/x && echo objects; echo x > .git/hooks/x && echo hooks; echo x > .git/x && echo git; echo x > sub/x && echo sub`)
		if want := "objects\nsub\n"; out != want {
			t.Errorf("mounts %q: wrote %q, want %q", ability.mounts(), out, want)
		}
	}
}

// TestFileAsRoot has a root that is no directory.
func TestFileAsRoot(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		policy := onlyWorkspace()
		policy.WritableRoots = []string{filepath.Join(w.outside, "file")}
		_, out := a.run(t, w, w.confinement(t, ability, policy), "", `exec 2>/dev/null
			echo x > $OUT/file && echo file; echo x > $OUT/new && echo new; rm $OUT/file && echo removed`)
		if want := "file\n"; out != want {
			t.Errorf("mounts %q: wrote %q, want %q", ability.mounts(), out, want)
		}
	}
}

// TestEntriesAreNotLinks has a link at the top of a root that is opened entry by
// entry: its target must not be opened with it.
func TestEntriesAreNotLinks(t *testing.T) {
	a := newAgent(t)
	noMounts := canConfine(t)
	noMounts.Mounts, noMounts.ByUser = false, false
	w := newWorld(t)
	must(t, os.Symlink(w.outside, filepath.Join(w.ws, "link")))
	_, out := a.run(t, w, w.confinement(t, noMounts, onlyWorkspace()), "", `exec 2>/dev/null
		echo x > link/file && echo outside; echo x > file && echo file; echo x > sub/new && echo sub; echo x > new && echo new; mv file sub/ && echo moved`)
	if want := "file\nsub\n"; out != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
}

// TestChangedNameStopsTheCommand replaces a root after the confinement was made,
// as a command in the background could.
func TestChangedNameStopsTheCommand(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, k := range []struct {
		ability Ability
		below   string
	}{{best, ""}, {noMounts, ""}, {best, "dir"}, {noMounts, "dir"}} {
		ability, below := k.ability, k.below
		w := newWorld(t)
		extra := filepath.Join(w.base, "extra")
		must(t, os.MkdirAll(filepath.Join(extra, "dir"), 0o755))
		policy := onlyWorkspace()
		policy.WritableRoots = []string{filepath.Join(extra, below)}
		c := w.confinement(t, ability, policy)
		must(t, os.RemoveAll(extra))
		must(t, os.Symlink(w.outside, extra))
		spec := proc.Spec{Argv: []string{"sh", "-c", "echo ran > " + w.outside + "/file; echo ran > " + w.outside + "/dir/new"}, Dir: w.ws}
		must(t, c.Set(&spec))
		r := a.spawner.Run(t.Context(), spec, nil)
		text, err := os.ReadFile(filepath.Join(w.outside, "file"))
		must(t, err)
		wrote := string(text) != "outside\n" || exists(filepath.Join(w.outside, "dir", "new"))
		// Landlock gives nothing to a link, mounts cannot be made there.
		if wrote || ability.Mounts && r.Err == nil {
			t.Errorf("mounts %q: result %+v, wrote %v", ability.mounts(), r, wrote)
		}
	}
}

// TestHalfConfinedDoesNotRun has steps fail.
func TestHalfConfinedDoesNotRun(t *testing.T) {
	a := newAgent(t)
	canConfine(t)
	here, err := mountNamespace()
	must(t, err)
	for name, raw := range map[string]string{
		"not a plan":         `7`,
		"missing bind":       `{"mounts":"own","outside":"none","binds":[{"path":"L25vbmU="}]}`,
		"missing root":       `{"roots":["L25vbmU="]}`,
		"everybody's mounts": `{"mounts":"given","outside":"` + here + `"}`,
		"nobody's mounts":    `{"mounts":"given"}`,
		"wrong type":         `{"roots":"x"}`,
		"not even a paths":   `{"roots":["!"]}`,
	} {
		w := newWorld(t)
		r := a.spawner.Run(t.Context(), proc.Spec{
			Argv: []string{"sh", "-c", "echo ran > ran"}, Dir: w.ws, Confine: []byte(raw),
		}, nil)
		if r.Err == nil || !strings.Contains(r.Err.Error(), "confine: ") || exists(filepath.Join(w.ws, "ran")) {
			t.Errorf("%s: result %+v, ran %v", name, r, exists(filepath.Join(w.ws, "ran")))
		}
	}
}

// TestErrorsKeepTheirNumber has one cross two processes.
func TestErrorsKeepTheirNumber(t *testing.T) {
	a := newAgent(t)
	canConfine(t)
	r := a.spawner.Run(t.Context(), proc.Spec{Argv: []string{"true"}, Confine: []byte(`{"roots":["L25vbmU="]}`)}, nil)
	if !errors.Is(r.Err, os.ErrNotExist) {
		t.Errorf("error %v", r.Err)
	}
}
