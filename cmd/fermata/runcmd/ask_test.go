package runcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

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

// What no approval would have allowed was not refused because nobody could be asked.
func TestRefusalsSayWhy(t *testing.T) {
	for why, want := range map[string]string{
		"nothing may be written to /etc, and nobody may be asked": "fermata: refused, since nobody could be asked:",
		"the command was not run: a rule of the user forbids it":  "fermata: refused:",
		"plan mode is on, and nothing is changed":                 "fermata: refused:",
	} {
		var l refusedCalls
		l.add("x", why)
		var out bytes.Buffer
		l.explain(cli.Streams{Err: &out}, "how")
		if head, _, _ := strings.Cut(out.String(), "\n"); head != want {
			t.Errorf("%s: %q, want %q", why, head, want)
		}
	}
}
