package main

import "testing"

// Whoever answers twice, because the first answer was killed, is told what became
// of it.
func TestApproveTellsOfACrash(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, _, _ = pl.run("exec", "--demo", "--park", "-a", "untrusted", "run: echo ready; sleep 600")
	id := pl.conversation()
	pr := pl.start("approve", id)
	pl.awaitText(id, "ready")
	_ = pr.cmd.Process.Kill()
	pr.code()
	_, errs, code := pl.run("approve", id)
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, "stderr", errs, "fermata: turn 1 was interrupted; it ended as crashed\n", "has no pending approval\n")
}
