package main

import (
	"os"
	"strings"
	"testing"
)

// A launcher that is killed cannot pass on a signal: the end of its pipe stops the turn and
// everything that it runs. Commands have neither the pipe nor the variable.
func TestEndOfTheLauncherStopsTheTurn(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pipe, launcher, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = pl.command(t.Context(), "exec", "--demo", `run: echo "variable: $FERMATA_LAUNCHER_FD."; readlink /proc/self/fd/3; echo ready; sleep 600`)
	pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, &pr.err
	pr.cmd.ExtraFiles = []*os.File{pipe}
	pr.cmd.Env = append(pr.cmd.Environ(), "FERMATA_LAUNCHER_FD=3")
	pr.begin(func() {})
	_ = pipe.Close()
	id := pl.conversation()
	pl.awaitText(id, "ready")
	tree := below(pr.cmd.Process.Pid)
	_ = launcher.Close()
	if code := pr.code(); code != exitTerminated {
		t.Errorf("exit code %d, want %d", code, exitTerminated)
	}
	pl.noneLeft(t, tree)
	text := pl.sound(id)
	contains(t, "what the model was told", text, "variable: .", "Interrupted:")
	if strings.Contains(text, "pipe:[") {
		t.Errorf("the command has the launcher's pipe:\n%s", text)
	}
}

// A variable that names no pipe is not ignored in silence, and stops nothing.
func TestWrongLauncherVariable(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "x", "1", "99"} {
		pl := newPlace(t)
		pl.env = append(pl.env, "FERMATA_LAUNCHER_FD="+value)
		_, errs, code := pl.run("version")
		if code != 0 || !strings.Contains(errs, "does not name a pipe") {
			t.Errorf("%q: exit code %d, stderr %q", value, code, errs)
		}
	}
}
