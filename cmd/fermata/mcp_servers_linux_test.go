package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	p "github.com/fermata-agent/fermata/protocol"
)

// fermata calls the tool of an MCP server, which is fermata.
func TestExecCallsAToolOfAnMCPServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c", "inner__codex", `{"prompt":"go deeper"}`)),
		modeltest.Respond(modeltest.Say("from within")),
		modeltest.Respond(modeltest.Say("all done")))
	s.nest()
	out := s.must("exec", "--json", "call it")
	contains(t, "output", out,
		`"type":"mcp_tool_call","status":"in_progress","server":"inner","tool":"codex","arguments":{"prompt":"go deeper"},"result":null,"error":null`,
		`"text":"from within"`, `"status":"completed"`, "all done")
	if last := tail(s.srv.Wait(3), 1); !strings.Contains(strings.Join(last, " "), "from within") {
		t.Errorf("the model was sent %s", last)
	}
}

// nest makes fermata an MCP server of fermata.
func (s *mcpSite) nest() {
	s.t.Helper()
	s.configure(fmt.Sprintf("\n[mcp_servers.inner]\ncommand = %q\nargs = [\"mcp-server\", \"-c\", \"mcp_servers.inner.enabled=false\"]\n"+
		"env_vars = [\"FERMATA_HOME\"]\nenabled_tools = [\"codex\"]\napproval = \"allow\"\nstartup_timeout_sec = 300\n", s.bin))
}

// What the inner fermata asks, an approval of its own, is asked of the client of the outer one.
func TestAnElicitationIsPassedOn(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"action":"accept","content":{}}`: "ran",
		`{"action":"decline"}`:             "did not run",
	} {
		s := newMCPSite(t, "untrusted",
			modeltest.Respond(modeltest.Call("c", "inner__codex", `{"prompt":"make it"}`)),
			modeltest.Respond(shellCall("call_1", "touch", "made")),
			modeltest.Respond(modeltest.Say("the inner one is done")),
			modeltest.Respond(modeltest.Say("all done")))
		s.nest()
		c := s.connect()
		c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go deeper"}}}`)
		ask := c.await("an elicitation", func(m map[string]any) bool { return m["method"] == "elicitation/create" })
		contains(t, "question", fmt.Sprint(ask["params"]), "The MCP server inner asks: Allow to run `touch made` in ")
		c.send(`{"jsonrpc":"2.0","id":%v,"result":%s}`, ask["id"], answer)
		contains(t, "answer", c.answer(7), "all done")
		got := "ran"
		if _, err := os.Stat(filepath.Join(s.work, "made")); err != nil {
			got = "did not run"
		}
		if got != want {
			t.Errorf("%s: the command %s", answer, got)
		}
		c.in.Close()
		c.code()
		for _, conv := range s.conversations() {
			s.fsck(string(conv.ID))
		}
	}
}

// An interrupt outside stops the turn of the inner fermata, with everything that it runs.
func TestInterruptOutsideStopsTheInnerTree(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c", "inner__codex", `{"prompt":"work"}`)),
		modeltest.Respond(shellCall("call_1", "sh", "-c", "setsid sleep 602 & mkdir pids; echo $$ > pids/shell; echo $! > pids/sleep; wait")))
	s.nest()
	pr := s.place.start("exec", "go deeper")
	inner := s.members(2)
	pr.signal(syscall.SIGINT)
	if code := pr.code(); code != exitInterrupted {
		t.Errorf("exit code %d\n%s", code, pr.err.String())
	}
	for _, r := range inner {
		awaitTrue(t, "the end of the inner command", func() bool { return !lives(r) })
	}
	list := s.conversations()
	if len(list) != 2 {
		t.Fatalf("%d conversations", len(list))
	}
	for _, conv := range list {
		s.must("fsck", "--repair", string(conv.ID)) // where everything is slow, the inner one may be killed before it has recorded its end
		s.awaitEvent(string(conv.ID), "the end of the turn", func(b p.Body) bool {
			e, ok := b.(*p.TurnEnded)
			return ok && (e.Reason == p.Interrupted || e.Reason == p.Crashed)
		})
	}
}

// members waits for n processes whose numbers are in the directory pids, and returns them.
func (s *mcpSite) members(n int) (list []row) {
	s.t.Helper()
	awaitTrue(s.t, "the processes", func() bool {
		list = written(filepath.Join(s.work, "pids"))
		return len(list) == n
	})
	return list
}

var mcpRounds = flag.Int("mcp-rounds", 3, "how often fermata is killed while an MCP server starts or works")

// What an MCP server started is gone when fermata was killed, while the server is started and while
// it works on a call.
func TestKilledFermataLeavesNoMCPServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.srv.Otherwise(modeltest.Respond(modeltest.Call("c", "slow__wait", "{}")))
	s.file("server", `#!/bin/sh
setsid sleep 601 &
sleep=$!
if [ -e answers ]; then
	read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}}'
	read line; read line; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}'
	read line
fi
mkdir pids; echo $$ > pids/shell; echo $sleep > pids/sleep
wait
`)
	s.configure(fmt.Sprintf("\n[mcp_servers.slow]\ncommand = %q\nstartup_timeout_sec = 3000\n", filepath.Join(s.work, "server")))
	for round := range *mcpRounds {
		if round%2 == 1 {
			s.file("answers", "")
		}
		cmd := s.command(t.Context(), "exec", "hello")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		members := s.members(2)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, r := range members {
			awaitTrue(t, "the end of the server", func() bool { return !lives(r) })
		}
		for _, name := range []string{"pids", "answers"} {
			_ = os.RemoveAll(filepath.Join(s.work, name))
		}
	}
}

// awaitTrue waits for something outside of this process.
func awaitTrue(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("waited for: " + what)
		}
	}
}
