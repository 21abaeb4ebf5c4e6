package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// What an MCP server started is gone when fermata was killed, even while it is started.
func TestKilledFermataLeavesNoMCPServer(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.file("server", "#!/bin/sh\nsetsid sleep 601 &\necho $$ $! > pids.new\nmv pids.new pids\nwait\n")
	s.configure(fmt.Sprintf("\n[mcp_servers.slow]\ncommand = %q\nstartup_timeout_sec = 3000\n", filepath.Join(s.work, "server")))
	cmd := s.command(t.Context(), "exec", "hello")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	awaitTrue(t, "the server", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.work, "pids"))
		n, _ := fmt.Sscan(string(b), &pids[0], &pids[1])
		return n == 2
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		awaitTrue(t, "the end of the server", func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

// awaitTrue waits for something outside of this process.
func awaitTrue(t *testing.T, what string, ok func() bool) {
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
