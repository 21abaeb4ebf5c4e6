package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestScreenSend(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo())
	s.sees("Describe a task, or type / for commands", "ready", "workspace-write")
	s.golden("welcome")
	s.types("talk 5", "Enter")
	s.sees("word5", "ready")
	s.golden("send")
	s.types("/quit", "Enter")
	s.sees("to resume: fermata resume ", "exit code 0")
	s.golden("quit")
}

func TestScreenStopText(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'talk 200'"))
	s.sees("word5", "working")
	s.keys("Escape")
	s.sees("interrupted after", "reply kept", "ready")
	s.golden("stop_text")
	s.types("what happened?", "Enter")
	s.sees("The turn was interrupted", "ready")
}

// A stop in the middle of a command ends the whole tree.
func TestScreenStopCommand(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	pids := filepath.Join(pl.work, "pids")
	if err := os.Mkdir(pids, 0o777); err != nil {
		t.Fatal(err)
	}
	pl.file("victim", deaf+daemon+foreground)
	s := newScreen(t, pl, pl.demo("'run: echo begun; sh victim; echo over'"))
	s.sees("begun")
	var crowd []row
	eventually(t, "all of the command lives", func() bool {
		crowd = written(pids)
		return len(crowd) == 3
	})
	s.keys("C-c")
	s.sees("interrupted after", "killed", "ready")
	for _, r := range crowd {
		if lives(r) {
			t.Errorf("it lives:%v", r)
		}
	}
	s.golden("stop_command")
}

func TestScreenSteerAndQueue(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'run: while [ ! -e go ]; do sleep 0.1; done'"))
	s.sees("running")
	s.types("talk 3", "Enter")
	s.sees("steering: talk 3")
	s.types("talk 4", "Tab")
	s.sees("queued: talk 4")
	s.golden("waiting")
	s.keys("Up")
	s.sees("› talk 4")
	s.gone("queued: talk 4")
	s.types("0", "Tab")
	s.sees("queued: talk 40")
	pl.file("go", "")
	s.sees("word3", "word40", "ready")
	s.golden("steer_queue")
}

// What waits is back in the composer after a stop.
func TestScreenStopReturnsMessages(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'wait 600'"))
	s.sees("working")
	s.types("one", "Enter")
	s.sees("steering: one")
	s.types("two", "Tab")
	s.sees("queued: two")
	s.keys("Escape")
	s.sees("interrupted after", "ready", "│ › one", "│   two")
	s.golden("returned")
}

func TestScreenReplace(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'wait 600'"))
	s.sees("working")
	s.types("talk 3", "C-s")
	s.sees("replaced after", "word3", "ready")
	s.golden("replace")
}

func TestScreenApproveAndDeny(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("-a", "untrusted"))
	s.sees("ready")
	s.types("run: touch yes", "Enter")
	s.sees("waiting for your answer", "touch yes")
	s.golden("ask")
	s.answer("y")
	s.sees("ready")
	if _, err := os.Stat(filepath.Join(pl.work, "yes")); err != nil {
		t.Error(err)
	}
	s.golden("approved")
	s.types("run: touch no", "Enter")
	s.sees("waiting for your answer", "touch no")
	s.answer("n")
	s.sees("What should it do instead?")
	s.types("not today", "Enter")
	s.sees("ready")
	if _, err := os.Stat(filepath.Join(pl.work, "no")); err == nil {
		t.Error("it ran")
	}
	s.golden("denied")
}

// An approval that waits is there again after the program was left, and the
// answer runs the command.
func TestScreenApprovalAfterRestart(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("-a", "untrusted", "'run: touch yes'"))
	s.sees("waiting for your answer")
	s.signal(syscall.SIGTERM)
	s.sees("is waiting for approval", "exit code 143")
	again := newScreenAgain(s, pl.bin+" resume --last; echo exit code $?; exec sleep 600")
	again.sees("waiting for your answer", "touch yes")
	again.answer("y")
	again.sees("ready")
	if _, err := os.Stat(filepath.Join(pl.work, "yes")); err != nil {
		t.Error(err)
	}
}

func TestScreenResumeAfterKill(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'run: echo printed; sleep 600'"))
	s.sees("printed")
	id := pl.conversation()
	pl.awaitText(id, "printed\n")
	s.types("waits", "Tab")
	s.sees("queued: waits")
	did := below(s.fermata())
	s.signal(syscall.SIGKILL)
	for _, r := range did { // else whoever opens it ends them, and says so
		eventually(t, "what ran has ended", func() bool { return hasEnded(r) })
	}
	again := newScreenAgain(s, pl.bin+" resume --last; echo exit code $?; exec sleep 600")
	again.sees("printed", "recovered on open", "ready", "│ › waits")
	again.golden("after_kill")
	again.types("", "C-u")
	again.types("what happened?", "Enter")
	again.sees("You had asked", "ready")
	again.types("/quit", "Enter")
	again.sees("exit code 0")
	pl.fsck(id)
}

func TestScreenPicker(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	for _, prompt := range []string{"talk 2", "talk 3", "plan: a; b"} {
		pl.must("exec", "--demo", prompt)
	}
	s := newScreen(t, pl, pl.bin+" resume; echo exit code $?; exec sleep 600")
	s.sees("talk 2", "talk 3", "plan: a; b")
	s.golden("picker")
	s.types("talk 3", "Enter")
	s.sees("word3", "ready")
	s.types("/resume", "Enter")
	s.sees("plan: a; b")
	s.types("plan", "Enter")
	s.sees("The plan is carried out", "ready")
	s.golden("plan")
}

func TestScreenUndo(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	file := filepath.Join(pl.work, "a.txt")
	pl.file("a.txt", "before\n")
	s := newScreen(t, pl, pl.demo("'write a.txt: after'"))
	s.sees("a.txt", "ready")
	eventually(t, "it is written", func() bool { b, _ := os.ReadFile(file); return strings.HasPrefix(string(b), "after") })
	s.types("/diff", "Enter")
	s.sees("+after", "Esc goes back")
	s.golden("diff")
	s.keys("Escape")
	s.gone("Esc goes back")
	s.types("/undo-turn", "Enter")
	s.sees("Restore 1 file", "+before")
	s.golden("undo")
	s.answer("y")
	s.sees("was undone")
	if b, err := os.ReadFile(file); err != nil || string(b) != "before\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	s.golden("undone")
}

func TestScreenShellLine(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo())
	s.sees("ready")
	s.types("!echo out of the shell", "Enter")
	s.sees("out of the shell", "ready")
	s.golden("shell")
}

// Background commands are shown, listed and ended; whoever quits is asked.
func TestScreenBackground(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("-c", "experimental_use_exec_command_tool=true"))
	s.sees("ready")
	s.types("start: sleep 600", "Enter")
	s.sees("1 in background", "ready")
	s.types("start: sleep 700", "Enter")
	s.sees("2 in background", "ready")
	s.types("/ps", "Enter")
	s.sees("1  sleep 600", "2  sleep 700")
	s.golden("ps")
	s.keys("Escape")
	s.gone("Background commands") // or the next key would be one with Alt
	s.types("/kill 1", "Enter")
	s.sees("is being stopped")
	s.keys("PageUp") // which takes the hint away
	s.sees("interrupted · 1 process killed", "1 in background")
	s.keys("End")
	s.types("/quit", "Enter")
	s.sees("1 background command still running", "sleep 700")
	s.golden("quit_background")
	did := below(s.fermata())
	s.answer("y")
	s.sees("exit code 0")
	for _, r := range did {
		if lives(r) {
			t.Errorf("it lives:%v", r)
		}
	}
}

// Where pastes come without brackets, they are not sent line by line.
func TestScreenPasteWithoutBrackets(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	pl.file("paste", "one\n!touch made\n\ttwo\nlast")
	s := newScreen(t, pl, "export TERM=xterm-256color; "+pl.demo())
	s.sees("ready")
	s.tmux("load-buffer", filepath.Join(pl.work, "paste"))
	s.tmux("paste-buffer")
	s.sees("│ › one ", "!touch made", "last")
	s.keys("Right", "Enter") // an Enter alone, that soon, could be the end of the paste's last line
	s.sees("I understand")
	if _, err := os.Stat(filepath.Join(pl.work, "made")); err == nil {
		t.Error("a line of the paste was run")
	}
}
