package modeltest

import (
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/protocol"
)

// chatEncoder speaks the Chat Completions wire.
type chatEncoder struct {
	number int
	model  string
	next   int // index of the next tool call
}

func (e *chatEncoder) chunk(members obj) string {
	c := obj{"id": fmt.Sprintf("chatcmpl-%d", e.number), "object": "chat.completion.chunk", "created": 0, "model": e.model}
	for k, v := range members {
		c[k] = v
	}
	return "data: " + emit.Marshal(c) + "\n\n"
}

func (e *chatEncoder) delta(delta obj) string {
	return e.chunk(obj{"choices": []obj{{"index": 0, "delta": delta, "finish_reason": nil}}})
}

func (e *chatEncoder) start() []string {
	return []string{e.delta(obj{"role": "assistant", "content": ""})}
}

func (e *chatEncoder) say(deltas []string, _ bool) []string {
	var events []string
	for _, d := range deltas {
		events = append(events, e.delta(obj{"content": d}))
	}
	return events
}

func (e *chatEncoder) think(parts [][]string) []string {
	var events []string
	for i, deltas := range parts {
		if i > 0 {
			events = append(events, e.delta(obj{"reasoning_content": "\n\n"}))
		}
		for _, d := range deltas {
			events = append(events, e.delta(obj{"reasoning_content": d}))
		}
	}
	return events
}

func (e *chatEncoder) calls(calls []ToolCall, _ bool) []string {
	first := e.next
	e.next += len(calls)
	calls = asFunctions(calls)
	var events []string
	for i, c := range calls {
		events = append(events, e.delta(obj{"tool_calls": []obj{{
			"index": first + i, "id": c.ID, "type": "function", "function": obj{"name": c.Name, "arguments": ""},
		}}}))
	}
	for _, half := range []int{0, 1} {
		for i, c := range calls {
			events = append(events, e.delta(obj{"tool_calls": []obj{{
				"index": first + i, "function": obj{"arguments": emit.Halves(c.Arguments)[half]},
			}}}))
		}
	}
	return events
}

// asFunctions makes functions of custom calls, for wires that have no others.
func asFunctions(calls []ToolCall) []ToolCall {
	calls = slices.Clone(calls)
	for i, c := range calls {
		if c.Kind == protocol.CallCustom {
			calls[i].Arguments = emit.Marshal(obj{"input": c.Arguments})
		}
	}
	return calls
}

func (e *chatEncoder) end(reason string, calls bool, usage *protocol.Usage) []string {
	if reason == "" {
		reason = "stop"
		if calls {
			reason = "tool_calls"
		}
	}
	events := []string{e.chunk(obj{"choices": []obj{{"index": 0, "delta": obj{}, "finish_reason": reason}}})}
	if usage != nil {
		events = append(events, e.chunk(obj{"choices": []obj{}, "usage": obj{
			"prompt_tokens": usage.Input, "completion_tokens": usage.Output, "total_tokens": usage.Total,
			"prompt_tokens_details":     obj{"cached_tokens": usage.Cached},
			"completion_tokens_details": obj{"reasoning_tokens": usage.Reasoning},
		}}))
	}
	return append(events, "data: [DONE]\n\n")
}

func (e *chatEncoder) incomplete(reason string, usage *protocol.Usage) []string {
	if reason == "max_output_tokens" {
		reason = "length"
	}
	return e.end(reason, false, usage)
}

func (e *chatEncoder) fail(code, message string) []string { return e.errorEvent(code, message) }

func (e *chatEncoder) errorEvent(code, message string) []string {
	return []string{"data: " + emit.Marshal(obj{"error": obj{"message": message, "type": code, "param": nil, "code": code}}) + "\n\n"}
}

func (e *chatEncoder) ping() string { return ": PROCESSING\n\n" }
