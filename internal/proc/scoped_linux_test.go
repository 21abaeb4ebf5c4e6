package proc

import (
	"encoding/json"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestScopedSignals has a confined command without a PID namespace: neither it nor
// its shim, which kills with one call all that it can reach, reaches another
// process of the user.
func TestScopedSignals(t *testing.T) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < 6 {
		t.Skip("Landlock cannot scope signals here")
	}
	stranger := exec.Command("sleep", "100")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()

	s := newSpawner(t)
	script := `kill -0 ` + itoa(stranger.Process.Pid) + ` 2>/dev/null && echo reached; kill -0 $$ && echo own; trap "" TERM; (setsid sleep 100 &); echo`
	r, out := runSpec(t, s, Spec{Argv: []string{"sh", "-c", script}, Confine: json.RawMessage(`{}`), Linger: -1})
	if r.ExitCode != 0 || out.Text() != "own\n\n" || r.Killed == 0 {
		t.Errorf("result %+v, output %q", r, out.Text())
	}
	if !alivePID(stranger.Process.Pid) {
		t.Error("a stranger was killed")
	}
}
