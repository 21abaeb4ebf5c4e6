package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// What is not a request is answered as such, and the server goes on.
func TestMCPGarbage(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(modeltest.Say("still here")))
	c := s.connect()
	for _, x := range []struct {
		line string
		code float64
	}{
		{"rubbish", -32700},
		{`{"jsonrpc":"2.0","id":1,`, -32700},
		{"\xff\xfe", -32700},
		{`[]`, -32600},
		{`{"id":true,"method":"ping"}`, -32600},
		{`{"id":1,"method":"no/such"}`, -32601},
		{`{"id":1,"method":"interruptConversation"}`, -32602},
		{`{"id":1,"method":"tools/call","params":[]}`, -32602},
		{`{"id":1,"method":"no/such","params":{"x":"` + strings.Repeat("x", 17<<20) + `"}}`, -32601},
	} {
		c.send("%s", x.line)
		m := c.await("an error", func(map[string]any) bool { return true })
		if e, _ := m["error"].(map[string]any); e["code"] != x.code {
			t.Errorf("%.60s: %v, want %v", x.line, m, x.code)
		}
	}
	c.send(`[{"id":"a","method":"ping"},{"id":"b","method":"ping"}]`)
	if line := <-c.lines; !strings.HasPrefix(line, "[") || strings.Count(line, `"result":{}`) != 2 {
		t.Errorf("a batch: %s", line)
	}
	c.send(`{"id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi"}}}`)
	contains(t, "answer", c.answer(2), "still here")
	if _, err := c.in.Write([]byte(`{"id":3,"method":"pi`)); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
}

// A client that reads nothing holds up neither its own cancel nor the end.
func TestMCPClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("c", "sh", "-c", fmt.Sprintf("yes | head -c %d; sleep 65", longtest.Default(50_000_000, 5_000_000)))))
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = s.command(context.Background(), "mcp-server")
	in, err := pr.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pr.cmd.Stdout, pr.cmd.Stderr = w, &pr.err
	pr.begin(func() { w.Close() })
	if _, err := in.Write([]byte(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"much"}}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	id := s.conversation()
	s.awaitText(id, "y\ny\n")
	if _, err := in.Write([]byte(`{"method":"notifications/cancelled","params":{"requestId":1}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the turn is stopped", func() bool { return s.conversations()[0].Ended == "interrupted" })
	pr.signal(unix.SIGTERM)
	if code := pr.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
}

func TestMCPKilledServerIsResumed(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never", modeltest.Respond(shellCall("c", "sleep", "66")), modeltest.Respond(modeltest.Say("here again")))
	c := s.connect()
	c.send(`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"sleep"}}}`)
	id := msgOf(c.notice("session_configured"))["session_id"].(string)
	c.notice("exec_command_begin")
	c.signal(unix.SIGKILL)
	c.code()
	next := s.connect()
	next.send(`{"id":1,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, id)
	m := next.await("the state", func(m map[string]any) bool { return m["method"] == "notifications/initial_state" })
	state, _ := json.Marshal(m["params"])
	contains(t, "state", string(state), `{"msg":{"reason":"interrupted","type":"turn_aborted"}}`)
	next.send(`{"id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"conversationId":%q,"prompt":"go on"}}}`, id)
	contains(t, "answer", next.answer(2), "here again")
	next.in.Close()
	next.code()
	s.fsck(id)
}
