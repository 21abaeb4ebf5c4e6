package lines

import (
	"encoding/json"

	p "github.com/fermata-agent/fermata/protocol"
)

// jsonServerCall is the members of a call of an MCP server's tool. All are there, null
// if there is nothing to say.
type jsonServerCall struct {
	Server    string            `json:"server"`
	Tool      string            `json:"tool"`
	Arguments json.RawMessage   `json:"arguments"`
	Result    *jsonServerResult `json:"result"`
	Error     *jsonError        `json:"error"`
}

type jsonServerResult struct {
	Content    json.RawMessage `json:"content"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	Structured json.RawMessage `json:"structured_content"`
}

// serverCall is a call that has no answer so far.
func serverCall(t p.MCPTool, arguments json.RawMessage) jsonBody {
	return jsonBody{jsonServerCall: &jsonServerCall{Server: t.Server, Tool: t.Name, Arguments: orJSONNull(arguments)}, Status: "in_progress"}
}

func orJSONNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// withResult completes a call with the output.
func (c jsonServerCall) withResult(b *p.ToolOutput) jsonBody {
	body := jsonBody{jsonServerCall: &c, Status: "completed"}
	if b.MCP == nil || b.MCP.Result == nil || b.Aborted {
		text := b.Output
		if text == "" {
			text = "interrupted"
		}
		c.Error, body.Status = &jsonError{text}, "failed"
		return body
	}
	var r struct {
		Content    json.RawMessage `json:"content"`
		Meta       json.RawMessage `json:"_meta"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	_ = json.Unmarshal(b.MCP.Result, &r) // it was made by us
	c.Result = &jsonServerResult{r.Content, r.Meta, orJSONNull(r.Structured)}
	if len(r.Content) == 0 {
		c.Result.Content = json.RawMessage("[]")
	}
	if b.Failed {
		body.Status = "failed"
	}
	return body
}
