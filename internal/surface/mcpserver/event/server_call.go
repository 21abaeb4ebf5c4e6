package event

import p "github.com/fermata-agent/fermata/protocol"

// serverCallStarted is the begin of a call of another MCP server's tool.
func (t *Translator) serverCallStarted(b *p.ServerCallStarted) []Msg {
	c := t.call(b.Call)
	c.invocation = Msg{"server": b.Tool.Server, "tool": b.Tool.Name, "arguments": nil}
	if len(b.Arguments) > 0 {
		c.invocation["arguments"] = b.Arguments
	}
	return []Msg{{"type": "mcp_tool_call_begin", "call_id": c.wireID, "invocation": c.invocation}}
}

func serverCallEnd(c *call, b *p.ToolOutput) Msg {
	result := Msg{"Err": b.Output}
	if b.MCP != nil && b.MCP.Result != nil && !b.Aborted {
		result = Msg{"Ok": b.MCP.Result}
	}
	return Msg{"type": "mcp_tool_call_end", "call_id": c.wireID, "invocation": c.invocation, "duration": duration(b.Elapsed), "result": result}
}
