package mcpserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
)

type empty struct{}

// methods is the table of everything that is answered, and sent.
func (s *Server) methods() []jsonrpc.Method {
	nothing := func(context.Context, *jsonrpc.Request, empty) (empty, error) { return empty{}, nil }
	return slices.Concat([]jsonrpc.Method{
		jsonrpc.Handle("initialize", s.initialize),
		jsonrpc.Listen("notifications/initialized", func(context.Context, empty) {}),
		jsonrpc.Listen(cancelMethod, func(context.Context, cancelParams) {}), // the connection's own
		jsonrpc.Handle("ping", nothing),
		jsonrpc.Handle("logging/setLevel", s.setLevel),
		jsonrpc.Handle("tools/list", s.listTools),
		jsonrpc.Handle("tools/call", s.callTool).InLane(toolLane),
	}, s.directMethods(), s.localMethods(), sentMethods())
}

// A tool is a row of the table that tools/list and tools/call share.
type tool struct {
	name, title, about string
	schema             map[string]any
	unknown            func(arguments json.RawMessage) []string // those that it does not take
	call               func(context.Context, *jsonrpc.Request, callParams) (toolResult, error)
}

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Meta      struct {
		ProgressToken json.RawMessage `json:"progressToken,omitempty"`
	} `json:"_meta,omitzero"`
}

// A toolResult is the answer to tools/call.
type toolResult struct {
	Content    []textContent `json:"content"`
	IsError    *bool         `json:"isError,omitempty"`
	Structured any           `json:"structuredContent,omitempty"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func texts(list ...string) []textContent {
	content := []textContent{}
	for _, t := range list {
		content = append(content, textContent{"text", t})
	}
	return content
}

// failed is a result that says what went wrong.
func failed(list ...string) toolResult {
	return toolResult{Content: texts(list...), IsError: new(true)}
}

type listedTool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
}

type listedTools struct {
	Tools []listedTool `json:"tools"`
}

func (s *Server) listTools(context.Context, *jsonrpc.Request, empty) (listedTools, error) {
	list := listedTools{Tools: []listedTool{}}
	for _, t := range s.tools() {
		list.Tools = append(list.Tools, listedTool{t.name, t.title, t.about, t.schema})
	}
	return list, nil
}

func (s *Server) callTool(ctx context.Context, r *jsonrpc.Request, in callParams) (toolResult, error) {
	for _, t := range s.tools() {
		if t.name == in.Name {
			s.remarkUnknown(ctx, t.name, t.unknown(in.Arguments))
			return t.call(ctx, r, in)
		}
	}
	return failed("unknown tool " + in.Name), nil
}

// toolLane keeps the calls about one conversation in order.
func toolLane(params json.RawMessage) string {
	var in struct {
		Arguments struct {
			replyNames
			ConversationID string `json:"conversation_id"`
		} `json:"arguments"`
	}
	_ = json.Unmarshal(params, &in) // a bad one is refused by its handler
	if in.Arguments.ConversationID != "" {
		return in.Arguments.ConversationID
	}
	name, _ := in.Arguments.name()
	return name
}

// directLane does so for the direct requests; the names are the same, and so is the lane.
func directLane(params json.RawMessage) string {
	var in struct {
		ConversationID string `json:"conversationId"`
	}
	_ = json.Unmarshal(params, &in)
	return in.ConversationID
}

func (s *Server) makeTools() []tool {
	return append([]tool{
		newTool("codex", "Codex", "Begin a conversation with a coding agent and let it work on a prompt.", s.codex).withSettings(kebab),
		newTool("codex-reply", "Codex Reply", "Continue a conversation. While a turn runs, the prompt steers it.", s.codexReply),
	}, s.conversationTools()...)
}
