package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

func (pl *place) git(args ...string) string {
	pl.t.Helper()
	return git(pl.t, pl.work, pl.env, args...)
}

// snapshotTurn runs a turn with snapshots in a new repository. On a busy
// machine one may take too long, which is not what is tested: then it is done
// again.
func snapshotTurn(t *testing.T, prompt string) (*place, string) {
	t.Helper()
	for range 20 {
		pl := newPlace(t)
		pl.git("init", "-q")
		pl.file("a", "1\n")
		pl.git("add", ".")
		pl.git("commit", "-q", "-m", "first")
		pl.file("a", "edited\n")
		pl.must("exec", "--demo", "--snapshot", prompt)
		id := pl.conversation()
		tooSlow := slices.ContainsFunc(pl.events(id), func(e p.Event) bool {
			n, ok := e.Body.(*p.Notice)
			return ok && strings.Contains(n.Text, "longer than")
		})
		if !tooSlow {
			return pl, id
		}
	}
	t.Fatal("no snapshot is ever taken in time")
	return nil, ""
}

func TestUndoOfCommands(t *testing.T) {
	t.Parallel()
	pl, id := snapshotTurn(t, "plan: run: echo 2 > a && echo n > new; write b: b; run: echo more >> b")
	status := pl.git("status", "--porcelain")
	pl.awaitEvent(id, "the diff of the turn", func(b p.Body) bool {
		d, ok := b.(*p.TurnDiff)
		return ok && strings.Contains(d.Diff, "-edited\n+2\n") && strings.Contains(d.Diff, "+b\n+more\n")
	})
	_, errs, code := pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "-2\n+edited\n", "turn 1 was undone", "outside "+pl.work)
	if code != 0 || pl.read("a") != "edited\n" || pl.read("new") != "(none)" || pl.read("b") != "(none)" {
		t.Errorf("exit code %d, a is %q, new %q, b %q", code, pl.read("a"), pl.read("new"), pl.read("b"))
	}
	if got := pl.git("status", "--porcelain"); got != " M a\n" {
		t.Errorf("status %q, during the turn it was %q", got, status)
	}
	contains(t, "the model is told", pl.sound(id), "took back what turn 1 changed")
}

func TestUndoOfCommandsAfterLaterEdits(t *testing.T) {
	t.Parallel()
	pl, id := snapshotTurn(t, "run: echo 2 > a && echo n > new")
	pl.file("new", "mine\n")
	_, errs, code := pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "turn 1 was not undone: changed since: "+filepath.Join(pl.work, "new"))
	if code != exitFailed || pl.read("a") != "2\n" || pl.read("new") != "mine\n" {
		t.Errorf("exit code %d, a is %q, new %q", code, pl.read("a"), pl.read("new"))
	}
	if err := os.RemoveAll(filepath.Join(pl.work, ".git")); err != nil {
		t.Fatal(err)
	}
	_, errs, _ = pl.run("undo", id, "--yes")
	contains(t, "undo when the repository is gone", errs, "not in a git repository")
}

// Undo in a running turn says that it runs, and the command that it hints at works.
func TestUndoInARunningTurn(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.start("exec", "--demo", "wait 600")
	id := pl.conversation()
	pl.awaitEvent(id, "the turn", func(b p.Body) bool { _, ok := b.(*p.ModelRequested); return ok })
	_, errs, code := pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "turn 1 is running", "fermata interrupt "+id)
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	pl.must("interrupt", id)
}
