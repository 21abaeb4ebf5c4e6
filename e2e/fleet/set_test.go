package fleet

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// idOf returns the conversation in a line of a list.
func idOf(t *testing.T, list, text string) string {
	t.Helper()
	for line := range strings.Lines(list) {
		if strings.Contains(line, text) {
			return strings.Fields(line)[0]
		}
	}
	t.Fatalf("no %q in %s", text, list)
	return ""
}

// On a full stream a running turn ends and says why, no other begins, and what the messages advise helps: to delete, or to
// raise the limit.
func TestFullStreamIsEmptied(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	m := newMachine(t, s.ClientURL(), "max_bytes = 60000")
	m.must(append(turn, "talk 5")...)
	cmd, out := m.start(append(turn, "run: seq 30000; sleep 999")...)
	if code := exitCode(cmd); code != 1 || !strings.Contains(out.String(), "the turn was stopped so that its end could be recorded") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if report := m.must("fsck"); strings.Count(report, " ok") != 2 {
		t.Errorf("fsck: %s", report)
	}
	list := m.must("list")
	full, talk := idOf(t, list, "seq 30000"), idOf(t, list, "talk 5")
	if shown := m.must("show", full); !strings.Contains(shown, "failed") {
		t.Errorf("the turn that was stopped: %s", shown)
	}
	again := append(turn, "resume", talk, "talk 1")
	if out, err := m.run(again...); err == nil || !strings.Contains(out, "fermata store set max_bytes") {
		t.Errorf("a turn on a full stream: %v: %s", err, out)
	}
	m.must("store", "set", "max_bytes", "10000000")
	m.must(again...)
	m.must("delete", full, "--yes")
	if out, err := m.run("store", "set", "max_bytes", "100"); err == nil || !strings.Contains(out, "delete conversations first") {
		t.Errorf("a limit below what is used: %v: %s", err, out)
	}
	m.must("store", "set", "max_bytes", "0")
	if out := m.must("doctor", "--demo"); strings.Contains(out, "are used") {
		t.Errorf("without a limit, doctor says %s", out)
	}
}

// What is fixed when a stream is made can be changed later; a lease only while no process relies on one.
func TestStoreSet(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	m := newMachine(t, s.ClientURL(), "lease_ms = 60000")
	m.must(append(turn, "hi")...)
	node, _ := m.serve("n")
	if out, err := m.run("store", "set", "lease_ms", "20000"); err == nil || !strings.Contains(out, "(node n)") {
		t.Errorf("while a node has a lease: %v: %s", err, out)
	}
	_ = node.Process.Kill()
	_ = node.Wait()
	endLeaseOf(t, s.ClientURL(), "fermata", node.Process.Pid)
	m.must("store", "set", "lease_ms", "20000")
	if out := m.must("doctor", "--demo"); !strings.Contains(out, "leases last 20s") {
		t.Errorf("doctor says %s", out)
	}
	m.must(append(turn, "hi")...)
	for _, c := range []struct{ name, value, want string }{
		{"lease_ms", "1", "between 1s and 1h"},
		{"replicas", "9", "replicas are 1 to 5"},
		{"replicas", "3", "replicas"},
		{"memory", "1", "the settings are lease_ms, max_bytes, replicas"},
		{"max_bytes", "1GB", "not a whole number"},
	} {
		if out, err := m.run("store", "set", c.name, c.value); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("store set %s %s: %v: %s", c.name, c.value, err, out)
		}
	}
	files := newMachine(t, "")
	if out, err := files.run("store", "set", "max_bytes", "1"); err == nil || !strings.Contains(out, "conversations are in files") {
		t.Errorf("without NATS: %v: %s", err, out)
	}
}
