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
	})
	if got := out.String(); err != nil || strings.ContainsAny(got, "\x1b\a\u202e") || !strings.Contains(got, "1 tool\n") || !strings.Contains(got, "b: failed: e") {
		t.Errorf("%q, %v", got, err)
	}
}
