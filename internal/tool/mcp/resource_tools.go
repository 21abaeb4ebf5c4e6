package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

// A listTool lists resources for a model.
type listTool struct {
	all *Servers
	dir string
}

// Spec describes the tool to the model.
func (t *listTool) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "list_mcp_resources", Kind: protocol.CallFunction,
		Description: "Lists resources of MCP servers: data such as files, tables or pages that can be read with read_mcp_resource. A uri with {variables} is a template.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"server":{"type":"string","description":"List only those of this server."}},"additionalProperties":false}`),
	}
}

// ReadOnly reports true.
func (t *listTool) ReadOnly() bool { return true }

// Run lists what is known.
func (t *listTool) Run(_ context.Context, call tool.Call) tool.Result {
	var in struct {
		Server string `json:"server"`
	}
	if err := decodeArguments(call.Arguments, &in); err != nil {
		return refusal(err.Error())
	}
	if in.Server != "" && !t.all.Has(t.dir, in.Server) {
		return refusal("there is no MCP server " + in.Server)
	}
	list := []Resource{}
	for _, r := range t.all.Resources(t.dir) {
		if in.Server == "" || r.Server == in.Server {
			list = append(list, r)
		}
	}
	text, err := json.Marshal(map[string]any{"resources": list})
	if err != nil {
		return refusal(err.Error())
	}
	return tool.Result{Output: protocol.ToolOutput{Output: tool.Shorten(call, string(text), 0)}}
}

// A readTool reads a resource for a model.
type readTool struct {
	all *Servers
	dir string
	now Approvals
}

// Spec describes the tool to the model.
func (t *readTool) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "read_mcp_resource", Kind: protocol.CallFunction,
		Description: "Reads a resource of an MCP server.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string","description":"The name of the server."},` +
			`"uri":{"type":"string","description":"As list_mcp_resources has it, with the variables of a template filled in."}},"required":["server","uri"],"additionalProperties":false}`),
	}
}

// ReadOnly reports true: that is what resources are for.
func (t *readTool) ReadOnly() bool { return true }

// resourceCall is the tool that stands for reading in approvals and records.
const resourceCall = "resources/read"

// Run reads the resource, if the server may be used.
func (t *readTool) Run(ctx context.Context, call tool.Call) tool.Result {
	var in struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	if err := decodeArguments(call.Arguments, &in); err != nil {
		return refusal(err.Error())
	}
	s := t.all.find(t.dir, in.Server)
	if s == nil {
		return refusal(fmt.Sprintf("there is no MCP server %q", in.Server))
	}
	arguments, _ := json.Marshal(map[string]string{"uri": in.URI}) // strings: cannot fail
	stands := newTool(s, listed{Name: resourceCall, ReadOnly: true}).with(t.now)
	if instead := stands.approve(call, arguments); instead != nil {
		return *instead
	}
	if err := call.Host.Record(ctx, &protocol.ServerCallStarted{Call: call.ID, Tool: stands.of, Arguments: arguments}); err != nil {
		return stands.unanswered(ctx, err)
	}
	content, err := t.all.ReadResource(ctx, t.dir, in.Server, in.URI)
	if err != nil {
		return stands.unanswered(ctx, err)
	}
	text := protocol.PlainText(content)
	raw, _ := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}}) // strings: cannot fail
	return tool.Result{Output: protocol.ToolOutput{Output: tool.Shorten(call, text, 0), Content: content[1:], MCP: &protocol.MCPResult{Tool: stands.of, Result: raw}}}
}

func decodeArguments(text string, into any) error {
	raw, err := object(text)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}
