package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

var conversationCount = flag.Int("conversations", longtest.Default(60, 40), "how many conversations TestMCPManyConversations has")

// A server that may open few files serves any number of conversations, also followed ones, and leaves those in which
// nothing goes on to others.
func TestMCPManyConversations(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.srv.Otherwise(modeltest.Respond(modeltest.Say("done")))
	c := s.connectWithin(64)
	pid := c.cmd.Process.Pid
	before := residentMiB(t, pid)
	var ids []string
	for n := range *conversationCount {
		id := c.begun(n)
		ids = append(ids, id)
		if n%2 == 0 {
			c.send(`{"id":"listen %d","method":"addConversationListener","params":{"conversationId":%q}}`, n, id)
			c.await("the subscription", func(m map[string]any) bool { return m["id"] == fmt.Sprintf("listen %d", n) })
		}
	}
	t.Logf("%d conversations: %d descriptors, %.1f MiB before, %.1f MiB after", len(ids), descriptorsOf(t, pid), before, residentMiB(t, pid))

	for i, id := range ids { // the server comes back to each
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"and again"}}}`, 100_000+i, id)
		contains(t, "answer", c.answer(float64(100_000+i)), `"text":"done"`)
	}
	followed, other := ids[0], ids[len(ids)-1]
	s.must("exec", "resume", followed, "from outside")
	c.await("what another process did", func(m map[string]any) bool {
		params, _ := m["params"].(map[string]any)
		return m["method"] == "codex/event/task_complete" && params["conversationId"] == followed
	})
	s.must("exec", "resume", other, "from outside")
	c.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"and now?"}}}`, other)
	contains(t, "answer", c.answer(9), `"text":"done"`)

	c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
	s.fsck()
}

// connectWithin is connect for a server that may have so many descriptors.
func (s *mcpSite) connectWithin(descriptors int, args ...string) *mcpClient {
	s.t.Helper()
	bin := s.bin
	defer func() { s.bin = bin }()
	s.bin = filepath.Join(s.dir, "few-descriptors")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %q \"$@\"\n", descriptors, bin)
	if err := os.WriteFile(s.bin, []byte(script), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s.connect(args...)
}

// descriptorsOf counts what a process has open.
func descriptorsOf(t testing.TB, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
