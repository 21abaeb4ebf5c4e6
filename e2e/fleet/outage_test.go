package fleet

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// slowDialer gives connections of which the first is silent for too long.
type slowDialer struct{ dialed int }

// Dial implements nats.CustomDialer.
func (d *slowDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if d.dialed++; d.dialed == 1 {
		return silentConn{conn}, err
	}
	return conn, err
}

type silentConn struct{ net.Conn }

func (silentConn) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// A machine with much to do may be too slow for one connection: it tries again.
func TestConnectsAgainAfterATimeout(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	d := &slowDialer{}
	st := nats.New(t.Context(), nats.Options{URL: s.ClientURL(), Lease: time.Minute, Connect: []natsgo.Option{natsgo.SetCustomDialer(d)}})
	defer st.Close()
	if _, err := st.List(t.Context()); err != nil || d.dialed != 2 {
		t.Errorf("%v, after %d connections, want 2", err, d.dialed)
	}
}

// When the servers go while a turn runs, its command ends before others could have the conversation,
// the turn says why, and everything goes on when they are back.
func TestServersGoWhileATurnRuns(t *testing.T) {
	t.Parallel()
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
