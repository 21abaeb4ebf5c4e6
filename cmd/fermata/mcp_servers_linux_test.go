package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// fermata calls the tool of an MCP server, which is fermata.
func TestExecCallsAToolOfAnMCPServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c", "inner__codex", `{"prompt":"go deeper"}`)),
		modeltest.Respond(modeltest.Say("from within")),
		modeltest.Respond(modeltest.Say("all done")))
	s.configure(fmt.Sprintf("\n[mcp_servers.inner]\ncommand = %q\nargs = [\"mcp-server\", \"-c\", \"mcp_servers.inner.enabled=false\"]\nenv_vars = [\"FERMATA_HOME\"]\nenabled_tools = [\"codex\"]\nstartup_timeout_sec = 300\n", s.bin))
	out := s.must("exec", "--json", "call it")
	contains(t, "output", out,
		`"type":"mcp_tool_call","status":"in_progress","server":"inner","tool":"codex","arguments":{"prompt":"go deeper"},"result":null,"error":null`,
		`"text":"from within"`, `"status":"completed"`, "all done")
	if last := tail(s.srv.Wait(3), 1); !strings.Contains(strings.Join(last, " "), "from within") {
		t.Errorf("the model was sent %s", last)
	}
}
