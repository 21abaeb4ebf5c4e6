package fleet

import (
	"strings"
	"testing"
	"time"
)

// When the servers go while a turn runs, its command ends before others could have the conversation,
// the turn says why, and everything goes on when they are back.
func TestServersGoWhileATurnRuns(t *testing.T) {
	s := startServers(t, 1, "")
	m := newMachine(t, s.url(), "lease_ms = 6000")
	cmd, out, mark := m.startTurn()
	s.all[0].kill()
	gone := time.Now()
	eventually(t, "the command is dead", func() bool { return running(mark) == 0 })
	t.Logf("the command ended %v after the server", time.Since(gone))
	s.start(t, s.all[0])
	_ = cmd.Wait()
	if said := out.String(); !strings.Contains(said, "the NATS servers did not answer for so long") || !strings.Contains(said, "to resume:") {
		t.Errorf("it said %s", said)
	}
	answer := m.must("exec", "--skip-git-repo-check", "resume", "--last", "--all", "--demo", "what happened?")
	if !strings.Contains(answer, "sleep "+mark) {
		t.Errorf("afterwards: %s", answer)
	}
	if report := m.must("fsck"); !strings.Contains(report, " ok") {
		t.Errorf("fsck: %s", report)
	}
}
