package runcmd

import "testing"

// What helps for a command does not help for a tool of an MCP server.
func TestOnlyToolsWereRefused(t *testing.T) {
	const tool = "calling write of the MCP server docs needs an approval, and nobody can be asked; the user can allow it: fermata permissions allow --tool docs.write"
	var l refusedCalls
	l.add("docs.write", tool)
	if !l.onlyTools() {
		t.Error("a tool is taken for a command")
	}
	l.add("make", "not allowed, and nobody may be asked")
	if l.onlyTools() {
		t.Error("a command is taken for a tool")
	}
}
