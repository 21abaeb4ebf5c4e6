package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// noticed waits for what the user's program was told, one line each time.
func (pl *place) noticed(n int) []map[string]any {
	pl.t.Helper()
	var list []map[string]any
	eventually(pl.t, fmt.Sprintf("the program was run %d times", n), func() bool {
		text, _ := os.ReadFile(filepath.Join(pl.dir, "told"))
		list = nil
		for line := range strings.Lines(string(text)) {
			var m map[string]any
			if json.Unmarshal([]byte(line), &m) == nil {
				list = append(list, m)
			}
		}
		return len(list) == n
	})
	return list
}

func TestNotify(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.file("tell", "#!/bin/sh\nprintf '%s\\n' \"$2\" >> \"$1\"\n")
	notify := fmt.Sprintf(`notify=[%q, %q]`, filepath.Join(pl.work, "tell"), filepath.Join(pl.dir, "told"))

	pl.must("exec", "--demo", "-c", notify, "talk 2")
	id := pl.conversation()
	want := map[string]any{
		"type": "agent-turn-complete", "thread-id": id, "turn-id": "1", "cwd": pl.work,
		"input-messages": []any{"talk 2"}, "last-assistant-message": "[demo] word1 word2",
	}
	if d := cmp.Diff(want, pl.noticed(1)[0]); d != "" {
		t.Errorf("a turn that completed (-want +got):\n%s", d)
	}

	pr := pl.start("exec", "resume", id, "-c", notify, "wait 600")
	pl.awaitEvent(id, "the turn runs", func(b p.Body) bool {
		u, ok := b.(*p.UserMessage)
		return ok && p.PlainText(u.Content) == "wait 600"
	})
	pr.signal(syscall.SIGINT)
	pr.code()
	want = map[string]any{
		"type": "agent-turn-aborted", "reason": "interrupted", "thread-id": id, "turn-id": "2", "cwd": pl.work,
		"input-messages": []any{"wait 600"}, "last-assistant-message": nil,
	}
	if d := cmp.Diff(want, pl.noticed(2)[1]); d != "" {
		t.Errorf("a turn that was stopped (-want +got):\n%s", d)
	}

	pr = pl.start("exec", "resume", id, "-c", notify, "wait 601")
	pl.awaitEvent(id, "the turn runs", func(b p.Body) bool {
		u, ok := b.(*p.UserMessage)
		return ok && p.PlainText(u.Content) == "wait 601"
	})
	pr.signal(syscall.SIGKILL)
	pr.code()
	pl.must("exec", "resume", id, "-c", notify, "talk 1") // first ends the turn that was cut
	list := pl.noticed(4)
	if a, b := list[2], list[3]; a["turn-id"] == "4" {
		list[2], list[3] = b, a // two programs at once: either may be first
	}
	if list[2]["type"] != "agent-turn-aborted" || list[2]["reason"] != "crashed" || list[3]["type"] != "agent-turn-complete" {
		t.Errorf("a turn that a crash cut, and the next: %v", list[2:])
	}

	pl.run("exec", "--demo", "--park", "-a", "untrusted", "-c", notify, "run: touch made")
	if m := pl.noticed(5)[4]; m["type"] != "approval-requested" || m["command"] != "touch made" {
		t.Errorf("an approval that is needed: %v", m)
	}
}

// The program is not made deaf to SIGPIPE by how we treat it ourselves.
func TestNotifyProgramHasTheUsualSignals(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip(err)
	}
	pl := newPlace(t)
	pl.file("tell", "#!/bin/sh\ngrep SigIgn /proc/self/status > \"$1.new\" && mv \"$1.new\" \"$1\"\n")
	file := filepath.Join(pl.dir, "signals")
	pl.must("exec", "--demo", "-c", fmt.Sprintf(`notify=[%q, %q]`, filepath.Join(pl.work, "tell"), file), "talk 1")
	var text []byte
	eventually(t, "the program has run", func() bool {
		text, _ = os.ReadFile(file)
		return len(text) > 0
	})
	mask, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(string(text), "SigIgn:")), 16, 64)
	if err != nil || mask&(1<<(syscall.SIGPIPE-1)) != 0 {
		t.Errorf("%q, %v: SIGPIPE is ignored", text, err)
	}
}

// A program that cannot be run keeps nobody from working.
func TestNotifyWithoutProgram(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "-c", `notify=["/no/such/program"]`, "talk 1")
}

func TestNotifyOfALongMessage(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.file("tell", "#!/bin/sh\nprintf '%s\\n' \"$2\" >> \"$1\"\n")
	notify := fmt.Sprintf(`notify=[%q, %q]`, filepath.Join(pl.work, "tell"), filepath.Join(pl.dir, "told"))
	if _, errs, code := pl.runWith("talk 1"+strings.Repeat(" so", 100_000), "exec", "--demo", "-c", notify, "-"); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	said := pl.noticed(1)[0]["input-messages"].([]any)
	if text := said[0].(string); !strings.HasPrefix(text, "talk 1") || !strings.Contains(text, "omitted") {
		t.Errorf("%.100s", text)
	}
}

// What a command leaves to us when it has killed its supervisor is ended. The
// user's program is none of it.
func TestNotifyIsNoOrphan(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.file("tell", "#!/bin/sh\nsleep 1\nprintf '%s\\n' \"$2\" >> \"$1\"\n")
	notify := fmt.Sprintf(`notify=[%q, %q]`, filepath.Join(pl.work, "tell"), filepath.Join(pl.dir, "told"))
	pl.must("exec", "--demo", "-s", "danger-full-access", "-c", notify, "-c", "experimental_use_exec_command_tool=true",
		`start: trap 'kill -9 $PPID' TERM; sleep 100 & wait; sleep 100`)
	pl.noticed(1)
}

func TestViewImageReachesTheModel(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	pl.file("dot.png", b.String())
	contains(t, "what the model says", pl.must("exec", "--demo", "view: dot.png"), "The tool says: image "+filepath.Join(pl.work, "dot.png"))
	contains(t, "what the model says", pl.must("exec", "--demo", "view: none.png"), "no such file")
	contains(t, "without the tool", pl.must("exec", "--demo", "-c", "tools.view_image=false", "view: dot.png"), "no tool for it")
}

// Two people answer one approval at once: one is heard, the other is told, and
// the command runs once.
func TestTwoAnswersToOneApproval(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, errs, code := pl.run("exec", "--demo", "--park", "-a", "untrusted", "run: echo x >> ran")
	if code != exitWaiting {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	id := pl.conversation()
	a, b := pl.start("approve", id), pl.start("approve", id)
	codes := []int{a.code(), b.code()}
	if codes[0] > codes[1] {
		codes[0], codes[1] = codes[1], codes[0]
		a, b = b, a
	}
	// The one who is told ends; if it had opened the conversation, when the turn does.
	if codes[0] != exitOK || codes[1] != exitFailed {
		t.Errorf("exit codes %v\n%s%s", codes, a.err.String(), b.err.String())
	}
	if text := b.err.String(); !strings.Contains(text, "has no pending approval") && !strings.Contains(text, "no longer open") && !strings.Contains(text, "another process") {
		t.Errorf("the second is told:\n%s", text)
	}
	if ran, _ := os.ReadFile(filepath.Join(pl.work, "ran")); string(ran) != "x\n" {
		t.Errorf("the command wrote %q", ran)
	}
	pl.sound(id)
}
