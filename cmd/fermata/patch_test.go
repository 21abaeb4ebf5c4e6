package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

func (pl *place) read(name string) string {
	pl.t.Helper()
	text, err := os.ReadFile(filepath.Join(pl.work, name))
	if err != nil {
		return "(none)"
	}
	return string(text)
}

func TestPatchAndUndo(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.file("a.txt", "before\n")
	out, errs, code := pl.run("exec", "--demo", "write a.txt: after")
	if code != 0 || pl.read("a.txt") != "after\n" {
		t.Fatalf("exit code %d, a.txt is %q\n%s%s", code, pl.read("a.txt"), out, errs)
	}
	contains(t, "progress", errs, "$ apply_patch\n  M a.txt (+1 -1)\n  (ok, ")
	id := pl.conversation()
	contains(t, "show", pl.must("show", id), "$ apply_patch\n  M a.txt (+1 -1)\n")
	pl.awaitEvent(id, "the diff of the turn", func(b p.Body) bool {
		d, ok := b.(*p.TurnDiff)
		return ok && strings.Contains(d.Diff, "-before\n+after\n")
	})

	_, errs, code = pl.run("undo", id) // nobody says yes
	contains(t, "undo asks", errs, "-after\n+before\n", "Restore 1 file to the state before turn 1? [y/N]", "nothing was undone")
	if code != exitFailed || pl.read("a.txt") != "after\n" {
		t.Errorf("exit code %d, a.txt is %q", code, pl.read("a.txt"))
	}
	_, errs, code = pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "-after\n+before\n", "turn 1 was undone")
	if code != 0 || pl.read("a.txt") != "before\n" {
		t.Errorf("exit code %d, a.txt is %q", code, pl.read("a.txt"))
	}
	_, errs, _ = pl.run("undo", id, "--yes", "--turn", "1")
	contains(t, "undo again", errs, "turn 1 was already undone")
	_, errs, _ = pl.run("undo", id, "--yes")
	contains(t, "undo of nothing", errs, "there is no turn whose changes to files can be undone")
	told := pl.sound(id)
	contains(t, "the model is told", told, "took back what turn 1 changed")
	contains(t, "show", pl.must("show", id), "· what turn 1 changed in files was undone: "+filepath.Join(pl.work, "a.txt"))
}

func TestUndoAfterLaterEdits(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "write a.txt: one")
	pl.must("exec", "resume", "--last", "write a.txt: two")
	pl.must("exec", "resume", "--last", "write b.txt: b")
	id := pl.conversation()

	_, errs, code := pl.run("undo", id, "--yes", "--turn", "1")
	contains(t, "an earlier turn", errs, "turn 1 was not undone: changed since: "+filepath.Join(pl.work, "a.txt"), "turn 3 changed files later")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	pl.file("b.txt", "mine\n")
	_, errs, code = pl.run("undo", id, "--yes")
	contains(t, "an edit by the user", errs, "turn 3 was not undone: changed since: "+filepath.Join(pl.work, "b.txt"))
	if code != exitFailed || pl.read("b.txt") != "mine\n" {
		t.Errorf("exit code %d, b.txt is %q", code, pl.read("b.txt"))
	}
	for _, turn := range []string{"2", "1"} { // one after the other they can be taken back
		pl.must("undo", id, "--yes", "--turn", turn)
	}
	if pl.read("a.txt") != "(none)" || pl.read("b.txt") != "mine\n" {
		t.Errorf("a.txt is %q, b.txt %q", pl.read("a.txt"), pl.read("b.txt"))
	}
	pl.fsck(id)
}

func TestUndoOutsideGit(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "run: echo x > made")
	id := pl.conversation()
	_, errs, code := pl.run("undo", id, "--yes")
	contains(t, "undo", errs, "what commands changed cannot be undone without a snapshot")
	_, errs, code2 := pl.run("undo", id, "--yes", "--turn", "1")
	contains(t, "undo", errs, "turn 1 cannot be undone: only its commands may have changed files")
	if code != exitFailed || code2 != exitFailed || pl.read("made") != "x\n" {
		t.Errorf("exit codes %d and %d, made is %q", code, code2, pl.read("made"))
	}
	pl.must("exec", "resume", "--last", "plan: write a.txt: a; run: echo y > made")
	_, errs, _ = pl.run("undo", id, "--yes")
	contains(t, "undo of both", errs, "turn 2 also ran commands; what they changed is not undone", "turn 2 was undone")
	if pl.read("a.txt") != "(none)" || pl.read("made") != "y\n" {
		t.Errorf("a.txt is %q, made is %q", pl.read("a.txt"), pl.read("made"))
	}
}

func TestPatchAsJSON(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	out := pl.must("exec", "--demo", "--json", "write a.txt: a")
	item := fmt.Sprintf(`"type":"file_change","changes":[{"path":%q,"kind":"add"}],"status":`, filepath.Join(pl.work, "a.txt"))
	contains(t, "JSON", out, item+`"in_progress"`, item+`"completed"`)
}

// A patch outside the workspace is asked about, and applied there when it is
// approved.
func TestPatchOutsideIsAsked(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	outside, err := os.MkdirTemp("/var/tmp", "fermata-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outside) })
	target := filepath.Join(outside, "a.txt")
	_, errs, code := pl.run("exec", "--demo", "-a", "on-request", "--park", "write "+target+": a")
	contains(t, "exec", errs, "? waiting for approval: nothing may be written to "+target)
	if code != exitWaiting {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	id := pl.conversation()
	_, errs, code = pl.run("undo", id, "--yes")
	contains(t, "undo of a turn that waits", errs, "turn 1 is waiting for approval")
	if _, err := os.Stat(target); err == nil || code != exitFailed {
		t.Errorf("written before it was approved; exit code %d", code)
	}
	pl.must("fsck", "--repair", id) // leaves it waiting
	pl.must("approve", id)
	if text, err := os.ReadFile(target); err != nil || string(text) != "a\n" {
		t.Errorf("approved, and the file is %q, %v", text, err)
	}
	_, errs, _ = pl.run("exec", "--demo", "-a", "never", "write "+target+": b")
	contains(t, "never", errs, "the patch was not applied")
	if text, _ := os.ReadFile(target); string(text) != "a\n" {
		t.Errorf("written although nobody may be asked: %q", text)
	}
}

// TestKillInPatch kills the binary in the middle of a patch of many files. All
// of them are there afterwards, or none, and the model is told which.
func TestKillInPatch(t *testing.T) {
	t.Parallel()
	const many = 150
	var b strings.Builder
	b.WriteString("run: apply_patch <<'EOF'\n*** Begin Patch\n")
	for i := range many {
		fmt.Fprintf(&b, "*** Add File: d/%d\n+x\n", i)
	}
	b.WriteString("*** End Patch\nEOF")
	seen := map[int]int{}
	for i := range longtest.Default(6, 2) {
		pl := newPlace(t)
		proc := pl.start("exec", "--demo", b.String())
		id := pl.conversation()
		mark := []string{"patch_started", "patch_committed"}[i%2]
		pl.awaitKind(mark)
		select { // any instant is as good
		case <-time.After(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))):
		case <-proc.done:
		}
		_ = proc.cmd.Process.Kill() // it may have been quicker
		<-proc.done
		told := pl.sound(id)
		names, _ := filepath.Glob(filepath.Join(pl.work, "d", "*"))
		hidden, _ := filepath.Glob(filepath.Join(pl.work, "d", ".*"))
		if n := len(names); n != 0 && n != many || len(hidden) > 0 {
			t.Fatalf("%d of %d files are there, and %d temporary ones", n, many, len(hidden))
		}
		seen[len(names)]++
		var out *p.ToolOutput
		for _, e := range pl.events(id) {
			if o, ok := e.Body.(*p.ToolOutput); ok && out == nil {
				out = o
			}
		}
		if out == nil || out.Patch == nil || out.Patch.Applied != (len(names) == many) {
			body, _ := json.Marshal(out)
			t.Errorf("%d files are there; the output is %s\nthe model is told %s", len(names), body, told)
		}
	}
	t.Logf("files after the kill: %v", seen)
}

// awaitKind waits until the only conversation has an event of a kind. It looks often, as what follows is to hit the
// instant after that.
func (pl *place) awaitKind(kind string) {
	pl.t.Helper()
	eventuallyWithin(pl.t, 5*time.Millisecond, kind, func() bool { return strings.Contains(pl.journal(), `"kind":"`+kind+`"`) })
}

// journal is the text of the only conversation: its whole lines, as a kill may cut the write of a long one short,
// and a resume drops what there is of it.
func (pl *place) journal() string {
	names, _ := filepath.Glob(filepath.Join(pl.dir, "home/fermata/conversations/*/*/*/*.jsonl"))
	if len(names) == 0 {
		return ""
	}
	text, _ := os.ReadFile(names[0])
	return string(text[:bytes.LastIndexByte(text, '\n')+1])
}
