package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentMiB is how much memory a process has.
func residentMiB(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := resident.FindSubmatch(text)
	if err != nil || m == nil {
		t.Fatalf("no resident set in %q, %v", text, err)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}

// BenchmarkMCPIdleConversations reports how much memory a server has with 50 conversations that
// had a turn each, have a listener and a stream, and do nothing.
func BenchmarkMCPIdleConversations(b *testing.B) {
	const many = 50
	var empty, full float64
	for b.Loop() {
		s := newMCPSite(b, "never")
		s.srv.Otherwise(modeltest.Respond(modeltest.Say("done")))
		c := s.connect()
		empty = max(empty, residentMiB(b, c.cmd.Process.Pid))
		for n := range many {
			id := c.begun(n)
			c.send(`{"id":"listen %d","method":"addConversationListener","params":{"conversationId":%q}}`, n, id)
			c.send(`{"id":"stream %d","method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, n, id)
			c.await("the state", func(m map[string]any) bool { return m["method"] == "notifications/initial_state" })
		}
		full = max(full, residentMiB(b, c.cmd.Process.Pid))
		c.in.Close()
		if code := c.code(); code != 0 {
			b.Fatalf("exit code %d\n%s", code, c.err.String())
		}
	}
	b.ReportMetric(empty, "empty-MiB")
	b.ReportMetric(full, "full-MiB")
	b.ReportMetric((full-empty)*1024/many, "KiB/conversation")
}

// begun begins a conversation with one turn and returns its id.
func (c *mcpClient) begun(n int) string {
	c.t.Helper()
	c.send(`{"id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi"}}}`, n)
	var got struct {
		StructuredContent struct{ ThreadID string }
	}
	if err := json.Unmarshal([]byte(c.answer(float64(n))), &got); err != nil || got.StructuredContent.ThreadID == "" {
		c.t.Fatalf("answer %+v, %v", got, err)
	}
	return got.StructuredContent.ThreadID
}
