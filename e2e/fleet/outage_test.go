package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// When the servers go while a turn runs, its command ends before others could have the conversation,
// the turn says why, and everything goes on when they are back.
func TestServersGoWhileATurnRuns(t *testing.T) {
	withLease(t, func(ms int) bool {
		o := server.Options{StoreDir: t.TempDir()}
		s := listen(t, &o)
		m := newMachine(t, s.ClientURL(), fmt.Sprintf("lease_ms = %d", ms))
		cmd, out, mark, ok := m.tryTurn()
		if !ok {
			return false
		}
		s.Shutdown()
		s.WaitForShutdown()
		eventually(t, "the command is dead", func() bool { return running(mark) == 0 })
		listen(t, &o)
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
		return true
	})
}
