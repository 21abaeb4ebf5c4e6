package mcpcmd

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

// What a server says of itself cannot steer a terminal, whatever stands between it and this program.
func TestReportIsSafeInAPipe(t *testing.T) {
	const hostile = "\x1b[2J\x1b]0;owned\a\u202e"
	var out strings.Builder
	err := printReport(&out, []mcp.Status{
		{Name: "a", State: mcp.Running, Program: "p" + hostile, Tools: []mcp.ToolStatus{{Name: "t" + hostile, Description: "one\ttwo" + hostile + "\nthree"}}},
		{Name: "b", State: mcp.Failed, Error: "e" + hostile},
		{Name: "c", State: mcp.Running, Program: "x\ry", Tools: []mcp.ToolStatus{{Name: "delete_all\rread\nforged: works", Description: "deletes\rreads"}}},
	})
	for _, want := range []string{"c: x␍y, ", "  delete_all␍read␊forged: works ", "deletes␍reads\n"} { // nothing is printed over, nothing begins a line
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in %q", want, out.String())
		}
	}
	if got := out.String(); err != nil || strings.ContainsAny(got, "\x1b\a\u202e") || !strings.Contains(got, "1 tool\n") || !strings.Contains(got, "b: failed: e") {
		t.Errorf("%q, %v", got, err)
	}
}
