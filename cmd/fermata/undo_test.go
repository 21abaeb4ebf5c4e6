package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func (pl *place) git(args ...string) string {
	pl.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Dir, cmd.Env = pl.work, pl.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		pl.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
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
	pl, id := snapshotTurn(t, "plan: run: echo 2 > a && echo n > new; write b: b; run: echo more >> b")
	status := pl.git("status", "--porcelain")
	pl.awaitEvent(id, "the diff of the turn", func(b p.Body) bool {
		d, ok := b.(*p.TurnDiff)
		return ok && strings.Contains(d.Diff, "-edited\n+2\n") && strings.Contains(d.Diff, "+b\n+more\n")
	})
	_, errs, code := pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "-2\n+edited\n", "turn 1 is undone", "outside "+pl.work)
	if code != 0 || pl.read("a") != "edited\n" || pl.read("new") != "(none)" || pl.read("b") != "(none)" {
		t.Errorf("exit code %d, a is %q, new %q, b %q", code, pl.read("a"), pl.read("new"), pl.read("b"))
	}
	if got := pl.git("status", "--porcelain"); got != " M a\n" {
		t.Errorf("status %q, during the turn it was %q", got, status)
	}
	contains(t, "the model is told", pl.sound(id), "took back what turn 1 changed")
}

func TestUndoOfCommandsAfterLaterEdits(t *testing.T) {
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

func trees(before, after string) *p.TurnDiff {
	return &p.TurnDiff{Trees: &p.TreeRange{Root: "/w", Before: before, After: after}}
}

func TestChangeLog(t *testing.T) {
	call := func(turn p.TurnID) p.CallID { return p.CallID{Turn: turn, Response: 1} }
	patched := func(turn p.TurnID, applied bool) []p.Body {
		back := json.RawMessage(`{}`)
		return []p.Body{
			&p.PatchStarted{Patch: "p", Call: call(turn), Back: back},
			&p.ToolOutput{Call: call(turn), Patch: &p.PatchResult{Applied: applied}},
		}
	}
	for name, tt := range map[string]struct {
		events []p.Body
		turn   p.TurnID // asked for
		want   string   // the turn, its patches and its trees, or an error
	}{
		"nothing":             {nil, 0, "no turn changed files that could be put back"},
		"a patch":             {patched(1, true), 0, "turn 1, 1 patches"},
		"a patch that failed": {patched(1, false), 0, "no turn changed files that could be put back"},
		"a patch that was settled later": {
			[]p.Body{&p.PatchStarted{Patch: "p", Call: call(2)}, &p.ToolOutput{Call: call(2)}, &p.PatchSettled{Patch: "p", Applied: true}},
			0, "turn 2, 1 patches",
		},
		"the last is undone":  {append(patched(1, true), &p.Undone{Of: 1}), 0, "no turn changed files that could be put back"},
		"it is undone":        {append(patched(1, true), &p.Undone{Of: 1}), 1, "turn 1 was undone before"},
		"an undo is no patch": {[]p.Body{&p.PatchStarted{Patch: "u", Undoes: 1}, &p.PatchSettled{Patch: "u", Applied: true}}, 0, "no turn changed files that could be put back"},
		"no such turn":        {patched(1, true), 7, "turn 7 changed no files"},
		"pictures grow":       {[]p.Body{trees("a", "b"), trees("a", "c")}, 0, "turn 1, 0 patches, a to c"},
		"pictures go on":      {[]p.Body{trees("a", "b"), trees("b", "c")}, 0, "turn 1, 0 patches, a to c"},
		"pictures with a gap": {[]p.Body{trees("a", "b"), trees("x", "c")}, 0, "turn 1 cannot be undone: files were changed while it waited for an approval"},
		"pictures fail":       {append(patched(1, true), trees("a", "b"), &p.TurnDiff{}), 0, "turn 1, 1 patches"},
		"nothing changed":     {[]p.Body{&p.CommandStarted{Call: call(1)}, trees("a", "a")}, 1, "turn 1 changed no files"},
		"commands only": {
			[]p.Body{&p.CommandStarted{Call: call(1)}},
			1,
			"turn 1 cannot be undone: it changed no files but by commands, and no snapshot was taken",
		},
	} {
		log := newChangeLog()
		for _, b := range tt.events {
			log.apply(p.Event{Turn: 1, Body: b})
		}
		got := describeChoice(log.choose(tt.turn))
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func describeChoice(c *turnChanges, err error) string {
	if err != nil {
		return err.Error()
	}
	text := "turn " + string(rune('0'+c.turn)) + ", " + string(rune('0'+len(c.kept))) + " patches"
	if c.trees != nil {
		text += ", " + c.trees.Before + " to " + c.trees.After
	}
	return text
}
