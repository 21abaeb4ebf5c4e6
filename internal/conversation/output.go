package conversation

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// errNoOutput is the answer to a tool that asks for what no command has printed.
var errNoOutput = errors.New("there is no such output in this conversation")

// Output looks for the output of a call in the journal.
func (h *host) Output(ctx context.Context, call p.CallID) (string, error) {
	for after := uint64(0); ; {
		recs, err := h.conv.journal.Read(ctx, after, 200)
		if err != nil {
			return "", err
		}
		if len(recs) == 0 {
			return "", errNoOutput
		}
		for _, r := range recs {
			after = r.Seq
			if r.Kind != "tool_output" || p.TurnID(r.Turn) != call.Turn {
				continue
			}
			var out p.ToolOutput
			if err := json.Unmarshal(r.Body, &out); err != nil || out.Call != call {
				continue
			}
			switch {
			case out.Command != nil:
				return out.Command.Output, nil
			case out.MCP != nil:
				text, _ := tool.MCPContent(out.MCP.Result)
				return text, nil
			}
		}
	}
}
