package lines

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestCallsOfServersAsJSON(t *testing.T) {
	id := p.CallID{Turn: 1, Response: 1}
	find := p.MCPTool{Server: "docs", Name: "find"}
	begun := &p.ServerCallStarted{Call: id, Tool: find, Arguments: json.RawMessage(`{"q":"context"}`)}
	item := `{"id":"item_0","type":"mcp_tool_call","status":"STATUS","server":"docs","tool":"find","arguments":{"q":"context"},"result":RESULT,"error":ERROR}`
	line := func(kind, status, result, err string) string {
		return `{"type":"` + kind + `","item":` + strings.NewReplacer("STATUS", status, "RESULT", result, "ERROR", err).Replace(item) + "}\n"
	}
	started := line("item.started", "in_progress", "null", "null")
	for name, c := range map[string]struct {
		events []p.Body
		want   string
	}{
		"answered": {
			[]p.Body{begun, &p.ToolOutput{Call: id, MCP: &p.MCPResult{Result: json.RawMessage(`{"content":[{"type":"text","text":"3 hits"}]}`)}}},
			started + line("item.completed", "completed", `{"content":[{"type":"text","text":"3 hits"}],"structured_content":null}`, "null"),
		},
		"an error of the tool": {
			[]p.Body{begun, &p.ToolOutput{Call: id, Failed: true, MCP: &p.MCPResult{Result: json.RawMessage(`{"content":[],"structuredContent":{"a":1},"isError":true}`)}}},
			started + line("item.completed", "failed", `{"content":[],"structured_content":{"a":1}}`, "null"),
		},
		"not answered": {
			[]p.Body{begun, &p.ToolOutput{Call: id, Failed: true, Output: "it ended", MCP: &p.MCPResult{Error: "it ended"}}},
			started + line("item.completed", "failed", "null", `{"message":"it ended"}`),
		},
		"denied": {
			[]p.Body{
				&p.ApprovalRequested{Call: id, Kind: p.ApproveTool, MCP: &find, Detail: begun.Arguments, Command: []string{"docs.find", "{}"}},
				&p.ApprovalResolved{Call: id, Decision: p.Denied}, &p.ToolOutput{Call: id, Failed: true, Output: "rejected"},
			},
			line("item.completed", "failed", "null", `{"message":"rejected"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			j := New(Options{Out: &out, Conversation: "c"}, func(err error) { t.Error(err) })
			out.Reset()
			for _, b := range c.events {
				j.Event(p.Event{Turn: 1, Body: b})
			}
			if out.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
