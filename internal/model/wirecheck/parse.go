package wirecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Judge returns the first fault of the history in the body of a request, or nil.
// The error says that the body is not a request of that wire at all.
func Judge(w Wire, body []byte, remembered ...string) (*Fault, error) {
	items, err := Parse(w, body)
	if err != nil {
		return nil, err
	}
	return CheckWire(w, items, remembered...), nil
}

// Parse reads the history in the body of a request.
func Parse(w Wire, body []byte) ([]Item, error) {
	switch w {
	case Responses:
		return parseResponses(body)
	case Chat:
		return parseChat(body)
	case Anthropic:
		return parseAnthropic(body)
	}
	return nil, fmt.Errorf("unknown wire %q", w)
}

// isText tells a JSON string, or null, from what has to be read as a list: to try both takes twice as long.
func isText(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (data[0] == '"' || data[0] == 'n')
}

// A reader takes the texts out of contents, and keeps the first error.
type reader struct{ err error }

// text returns a content's text: itself, or the texts of its parts. A content is decoded as any with what it stands in: to
// decode it by itself takes several times as long.
func (r *reader) text(content any) string {
	switch c := content.(type) {
	case nil:
	case string:
		return c
	case []any:
		var all strings.Builder
		for _, part := range c {
			fields, ok := part.(map[string]any)
			text, isText := fields["text"].(string)
			if r.err == nil && (!ok && part != nil || !isText && fields["text"] != nil) {
				r.err = fmt.Errorf("a part without a text: %.100v", part)
			}
			all.WriteString(text)
		}
		return all.String()
	default:
		if r.err == nil {
			r.err = fmt.Errorf("a content that is neither text nor parts: %.100v", c)
		}
	}
	return ""
}

type responsesItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Role      string `json:"role"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Content   any    `json:"content"`
	Summary   any    `json:"summary"`
	Output    any    `json:"output"`
}

func parseResponses(body []byte) ([]Item, error) {
	var req struct {
		Input *[]responsesItem `json:"input"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		var plain struct {
			Input *string `json:"input"`
		}
		if json.Unmarshal(body, &plain) == nil && plain.Input != nil {
			return []Item{{Kind: User, Text: *plain.Input}}, nil
		}
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("request %s: unexpected %s", wrong.Field, wrong.Value)
		}
		return nil, fmt.Errorf("request: %w", err)
	}
	if req.Input == nil {
		return nil, errors.New("request without input")
	}
	var r reader
	out := make([]Item, len(*req.Input))
	for i, it := range *req.Input {
		out[i] = it.item(&r)
		out[i].At = i
	}
	if r.err != nil {
		return nil, fmt.Errorf("request input: %w", r.err)
	}
	return out, nil
}

func (it responsesItem) item(r *reader) Item {
	switch it.Type {
	case "message", "":
		if it.Role == "assistant" {
			return Item{Kind: Assistant, Text: r.text(it.Content)}
		}
		return Item{Kind: User, Text: r.text(it.Content)}
	case "reasoning":
		return Item{Kind: Reasoning, ID: it.ID, Text: r.text(it.Summary)}
	case "function_call":
		return Item{Kind: Call, Call: protocol.CallFunction, ID: it.CallID, Name: it.Name, Text: it.Arguments}
	case "custom_tool_call":
		return Item{Kind: Call, Call: protocol.CallCustom, ID: it.CallID, Name: it.Name, Text: it.Input}
	case "local_shell_call":
		id := it.CallID
		if id == "" {
			id = it.ID
		}
		return Item{Kind: Call, Call: protocol.CallLocalShell, ID: id, Name: it.Type}
	case "function_call_output":
		return Item{Kind: Output, Call: protocol.CallFunction, ID: it.CallID, Text: r.text(it.Output)}
	case "custom_tool_call_output":
		return Item{Kind: Output, Call: protocol.CallCustom, ID: it.CallID, Text: r.text(it.Output)}
	case "local_shell_call_output":
		return Item{Kind: Output, Call: protocol.CallLocalShell, ID: it.CallID, Text: r.text(it.Output)}
	}
	return Item{Kind: Assistant, Text: it.Type} // what the service itself did
}

func parseChat(body []byte) ([]Item, error) {
	var req struct {
		Messages []struct {
			Role       string `json:"role"`
			Content    any    `json:"content"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	var out []Item
	var r reader
	for at, m := range req.Messages {
		said := r.text(m.Content)
		switch m.Role {
		case "assistant":
			// Text first: on this wire a call and the text beside it are one message.
			if said != "" || len(m.ToolCalls) == 0 {
				out = append(out, Item{Kind: Assistant, Text: said, At: at})
			}
			for i, c := range m.ToolCalls {
				out = append(out, Item{
					Kind: Call, Call: protocol.CallFunction, ID: c.ID,
					Name: c.Function.Name, Text: c.Function.Arguments, At: at, Part: i,
				})
			}
		case "tool":
			out = append(out, Item{Kind: Output, Call: protocol.CallFunction, ID: m.ToolCallID, Text: said, At: at})
		default:
			out = append(out, Item{Kind: User, Text: said, At: at})
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("request messages: %w", r.err)
	}
	return out, nil
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   any             `json:"content"`
}

func parseAnthropic(body []byte) ([]Item, error) {
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	var out []Item
	for at, m := range req.Messages {
		var text string
		var blocks []block
		if isText(m.Content) && json.Unmarshal(m.Content, &text) == nil {
			blocks = []block{{Type: "text", Text: text}}
		} else if err := json.Unmarshal(m.Content, &blocks); err != nil {
			return nil, fmt.Errorf("request message %d: %w", at, err)
		}
		var r reader
		for i, b := range blocks {
			it := b.item(m.Role, &r)
			it.At, it.Part = at, i
			out = append(out, it)
		}
		if r.err != nil {
			return nil, fmt.Errorf("request message %d: %w", at, r.err)
		}
	}
	return out, nil
}

func (b block) item(role string, r *reader) Item {
	switch b.Type {
	case "tool_use":
		return Item{Kind: Call, Call: protocol.CallFunction, ID: b.ID, Name: b.Name, Text: string(b.Input)}
	case "tool_result":
		return Item{Kind: Output, Call: protocol.CallFunction, ID: b.ToolUseID, Text: r.text(b.Content)}
	case "thinking", "redacted_thinking":
		return Item{Kind: Reasoning, Text: b.Thinking}
	}
	if role == "assistant" {
		return Item{Kind: Assistant, Text: b.Text}
	}
	return Item{Kind: User, Text: b.Text}
}

// Body is how the service of a wire refuses a history with this fault: the body
// of an answer with status 400.
func (f *Fault) Body(w Wire) []byte {
	var v any
	switch w {
	case Chat:
		v = openAIError(f.chatText(), fmt.Sprintf("messages.[%d].role", f.Item.At))
	case Anthropic:
		v = map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": f.anthropicText()}}
	default:
		v = openAIError(f.responsesText(), "input")
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

func openAIError(message, param string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": param, "code": nil}}
}

func (f *Fault) responsesText() string {
	kind := map[protocol.CallKind]string{
		protocol.CallFunction: "function call", protocol.CallCustom: "custom tool call", protocol.CallLocalShell: "local shell call",
	}[f.Item.Call]
	switch f.Kind {
	case Missing, Late:
		return fmt.Sprintf("No tool output found for %s %s.", kind, f.Item.ID)
	case Twice:
		name := strings.ReplaceAll(kind, " ", "_")
		return fmt.Sprintf("Duplicate %s_output for call_id '%s'. Each %s must have exactly one matching %s_output.", name, f.Item.ID, name, name)
	case Alone:
		return fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", f.Item.ID)
	}
	return fmt.Sprintf("No tool call found for %s output with call_id %s.", kind, f.Item.ID)
}

func (f *Fault) chatText() string {
	switch f.Kind {
	case Missing, Late:
		return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
			"The following tool_call_ids did not have response messages: " + f.Item.ID
	case Twice:
		return fmt.Sprintf("Invalid parameter: Duplicate value for 'tool_call_id' of '%s' in message with role 'tool'.", f.Item.ID)
	}
	return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
}

func (f *Fault) anthropicText() string {
	switch f.Kind {
	case Missing, Late:
		return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
			"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", f.Item.At, f.Item.ID)
	case Twice:
		return fmt.Sprintf("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s",
			f.Item.At, f.Item.Part, f.Item.ID)
	case Repeated:
		return fmt.Sprintf("messages.%d.content.%d: `tool_use` ids must be unique", f.Item.At, f.Item.Part)
	case BadID:
		return fmt.Sprintf("messages.%d.content.%d.tool_use.id: String should match pattern '%s'", f.Item.At, f.Item.Part, anthropicID())
	case Alone:
		return fmt.Sprintf("messages.%d: The final block in an assistant message cannot be `thinking`.", f.Item.At)
	}
	return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
		"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", f.Item.At, f.Item.Part, f.Item.ID)
}
