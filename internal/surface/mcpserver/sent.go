package mcpserver

import (
	"encoding/json"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// bareParams are those of an event whose method is its type: of a call with what is in
// codex/event, of a stream with msg alone.
type bareParams struct {
	Meta *eventMeta `json:"_meta,omitempty"`
	ID   string     `json:"id,omitempty"`
	Msg  event.Msg  `json:"msg"`
	Seq  p.Seq      `json:"seq,omitempty"`
}

// decisionResult is how a client answers a question: with a decision, or as MCP has it.
type decisionResult struct {
	Decision *p.Decision `json:"decision,omitempty" enum:"approved,approved_for_session,denied,abort"`
	Action   string      `json:"action,omitempty" enum:"accept,decline,cancel"`
}

type cancelParams struct {
	RequestID json.RawMessage `json:"requestId"`
	Reason    string          `json:"reason,omitempty"`
}

// sentMethods is the table of everything that clients are sent beside answers.
func sentMethods() []jsonrpc.Method {
	list := []jsonrpc.Method{
		jsonrpc.Notification[cancelParams](cancelMethod),
		jsonrpc.Notification[progressParams]("notifications/progress"),
		jsonrpc.Notification[logMessage]("notifications/message"),
		jsonrpc.Notification[initialState]("notifications/initial_state"),
		jsonrpc.Notification[eventParams]("codex/event"),
		jsonrpc.Ask[elicitation, decisionResult]("elicitation/create"),
		jsonrpc.Ask[directAsk, decisionResult]("execCommandApproval"),
		jsonrpc.Ask[directAsk, decisionResult]("applyPatchApproval"),
	}
	for _, kind := range event.Types {
		list = append(list, jsonrpc.Notification[bareParams](kind), jsonrpc.Notification[listenerParams]("codex/event/"+kind))
	}
	return list
}
