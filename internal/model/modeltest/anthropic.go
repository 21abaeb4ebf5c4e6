package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/protocol"
)

// anthropicEncoder speaks the Anthropic Messages wire.
type anthropicEncoder struct {
	number int
	model  string
	next   int // index of the next block
}

func (e *anthropicEncoder) event(kind string, members obj) string {
	rest := strings.TrimPrefix(emit.Marshal(members), "{")
	if rest != "}" {
		rest = "," + rest
	}
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "\n\n"
}

func (e *anthropicEncoder) start() []string {
	message := obj{
		"id": fmt.Sprintf("msg_%d", e.number), "type": "message", "role": "assistant", "model": e.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": obj{"input_tokens": 0, "output_tokens": 1},
	}
	return []string{e.event("message_start", obj{"message": message})}
}

// block is one content block with its deltas; whole says whether it is closed.
func (e *anthropicEncoder) block(start obj, deltas []obj, whole bool) []string {
	index := e.next
	e.next++
	events := []string{e.event("content_block_start", obj{"index": index, "content_block": start})}
	for _, d := range deltas {
		events = append(events, e.event("content_block_delta", obj{"index": index, "delta": d}))
	}
	if whole {
		events = append(events, e.event("content_block_stop", obj{"index": index}))
	}
	return events
}

func (e *anthropicEncoder) say(deltas []string, whole bool) []string {
	var list []obj
	for _, d := range deltas {
		list = append(list, obj{"type": "text_delta", "text": d})
	}
	return e.block(obj{"type": "text", "text": ""}, list, whole)
}

func (e *anthropicEncoder) think(parts [][]string) []string {
	var list []obj
	for i, deltas := range parts {
		if i > 0 {
			list = append(list, obj{"type": "thinking_delta", "thinking": "\n\n"})
		}
		for _, d := range deltas {
			list = append(list, obj{"type": "thinking_delta", "thinking": d})
		}
	}
	list = append(list, obj{"type": "signature_delta", "signature": fmt.Sprintf("signed-%d-%d", e.number, e.next)})
	return e.block(obj{"type": "thinking", "thinking": "", "signature": ""}, list, true)
}

func (e *anthropicEncoder) calls(calls []ToolCall, whole bool) []string {
	var events []string
	for _, c := range asFunctions(calls) {
		half := emit.Halves(c.Arguments)
		events = append(events, e.block(obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": obj{}}, []obj{
			{"type": "input_json_delta", "partial_json": ""},
			{"type": "input_json_delta", "partial_json": half[0]},
			{"type": "input_json_delta", "partial_json": half[1]},
		}, whole)...)
	}
	return events
}

func (e *anthropicEncoder) end(reason string, calls bool, usage *protocol.Usage) []string {
	if reason == "" {
		reason = "end_turn"
		if calls {
			reason = "tool_use"
		}
	}
	delta := obj{"delta": obj{"stop_reason": reason, "stop_sequence": nil}}
	if usage != nil {
		delta["usage"] = obj{
			"input_tokens": usage.Input - usage.Cached - usage.CacheWrite, "cache_read_input_tokens": usage.Cached,
			"cache_creation_input_tokens": usage.CacheWrite, "output_tokens": usage.Output,
		}
	}
	return []string{e.event("message_delta", delta), e.event("message_stop", obj{})}
}

func (e *anthropicEncoder) incomplete(reason string, usage *protocol.Usage) []string {
	if reason == "max_output_tokens" {
		reason = "max_tokens"
	}
	return e.end(reason, false, usage)
}

func (e *anthropicEncoder) fail(code, message string) []string { return e.errorEvent(code, message) }

func (e *anthropicEncoder) errorEvent(code, message string) []string {
	return []string{e.event("error", obj{"error": json.RawMessage(emit.Marshal(obj{"type": code, "message": message}))})}
}

func (e *anthropicEncoder) ping() string { return e.event("ping", obj{}) }
