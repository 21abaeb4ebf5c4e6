package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// obj is a JSON object.
type obj = map[string]any

func marshal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // maps of strings always marshal
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// responsesEncoder speaks the Responses wire, with the events in the order and
// with the members that the service sends.
type responsesEncoder struct {
	number int
	model  string
	seq    int
	output []obj // finished items
	next   int   // output_index of the next item
}

func (e *responsesEncoder) event(kind string, members obj) string {
	members["sequence_number"] = e.seq
	e.seq++
	// The type comes first, as the service sends it.
	rest := strings.TrimPrefix(marshal(members), "{")
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + rest + "\n\n"
}

func (e *responsesEncoder) id(prefix string, index int) string {
	return fmt.Sprintf("%s_%d_%d", prefix, e.number, index)
}

func (e *responsesEncoder) response(status string) obj {
	return obj{
		"id": fmt.Sprintf("resp_%d", e.number), "object": "response", "created_at": 0, "status": status,
		"model": e.model, "error": nil, "incomplete_details": nil, "output": e.output, "usage": nil,
	}
}

func (e *responsesEncoder) start() []string {
	e.output = []obj{}
	return []string{
		e.event("response.created", obj{"response": e.response("in_progress")}),
		e.event("response.in_progress", obj{"response": e.response("in_progress")}),
	}
}

func (e *responsesEncoder) added(index int, item obj) string {
	return e.event("response.output_item.added", obj{"output_index": index, "item": item})
}

func (e *responsesEncoder) done(index int, item obj) string {
	e.output = append(e.output, item)
	return e.event("response.output_item.done", obj{"output_index": index, "item": item})
}

func (e *responsesEncoder) say(deltas []string, whole bool) []string {
	index := e.next
	e.next++
	id := e.id("msg", index)
	message := func(status string, content ...obj) obj {
		return obj{"type": "message", "id": id, "status": status, "role": "assistant", "content": append([]obj{}, content...)}
	}
	part := func(text string) obj {
		return obj{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
	}
	at := func(members obj) obj {
		members["item_id"], members["output_index"], members["content_index"] = id, index, 0
		return members
	}
	events := []string{
		e.added(index, message("in_progress")),
		e.event("response.content_part.added", at(obj{"part": part("")})),
	}
	text := strings.Join(deltas, "")
	for _, d := range deltas {
		events = append(events, e.event("response.output_text.delta", at(obj{"delta": d, "logprobs": []any{}})))
	}
	if !whole {
		return events
	}
	return append(events,
		e.event("response.output_text.done", at(obj{"text": text, "logprobs": []any{}})),
		e.event("response.content_part.done", at(obj{"part": part(text)})),
		e.done(index, message("completed", part(text))))
}

func (e *responsesEncoder) think(parts [][]string) []string {
	index := e.next
	e.next++
	id := e.id("rs", index)
	events := []string{e.added(index, obj{"type": "reasoning", "id": id, "summary": []any{}, "encrypted_content": "begun"})}
	var summary []obj
	for i, deltas := range parts {
		at := func(members obj) obj {
			members["item_id"], members["output_index"], members["summary_index"] = id, index, i
			return members
		}
		text := strings.Join(deltas, "")
		part := obj{"type": "summary_text", "text": text}
		summary = append(summary, part)
		events = append(events, e.event("response.reasoning_summary_part.added", at(obj{"part": obj{"type": "summary_text", "text": ""}})))
		for _, d := range deltas {
			events = append(events, e.event("response.reasoning_summary_text.delta", at(obj{"delta": d})))
		}
		events = append(events,
			e.event("response.reasoning_summary_text.done", at(obj{"text": text})),
			e.event("response.reasoning_summary_part.done", at(obj{"part": part})))
	}
	return append(events, e.done(index, obj{
		"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "secret-" + id,
	}))
}

func (e *responsesEncoder) item(c ToolCall, index int, status, arguments string) obj {
	if c.Kind == protocol.CallCustom {
		return obj{"type": "custom_tool_call", "id": e.id("ctc", index), "status": status, "call_id": c.ID, "name": c.Name, "input": arguments}
	}
	return obj{"type": "function_call", "id": e.id("fc", index), "status": status, "call_id": c.ID, "name": c.Name, "arguments": arguments}
}

func (e *responsesEncoder) calls(calls []ToolCall, whole bool) []string {
	first := e.next
	e.next += len(calls)
	var events []string
	for i, c := range calls {
		events = append(events, e.added(first+i, e.item(c, first+i, "in_progress", "")))
	}
	for _, half := range []int{0, 1} {
		for i, c := range calls {
			kind, id := "response.function_call_arguments.delta", e.id("fc", first+i)
			if c.Kind == protocol.CallCustom {
				kind, id = "response.custom_tool_call_input.delta", e.id("ctc", first+i)
			}
			events = append(events, e.event(kind, obj{"item_id": id, "output_index": first + i, "delta": halves(c.Arguments)[half]}))
		}
	}
	if !whole {
		return events
	}
	for i, c := range calls {
		if c.Kind == protocol.CallCustom {
			events = append(events, e.event("response.custom_tool_call_input.done", obj{"item_id": e.id("ctc", first+i), "output_index": first + i, "input": c.Arguments}))
		} else {
			events = append(events, e.event("response.function_call_arguments.done", obj{"item_id": e.id("fc", first+i), "output_index": first + i, "arguments": c.Arguments}))
		}
		events = append(events, e.done(first+i, e.item(c, first+i, "completed", c.Arguments)))
	}
	return events
}

// halves cuts a text in two, between characters.
func halves(s string) [2]string {
	runes := []rune(s)
	n := len(runes) / 2
	return [2]string{string(runes[:n]), string(runes[n:])}
}

func responsesUsage(u *protocol.Usage) any {
	if u == nil {
		return nil
	}
	return obj{
		"input_tokens": u.Input, "input_tokens_details": obj{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": obj{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Total,
	}
}

func (e *responsesEncoder) end(_ string, _ bool, usage *protocol.Usage) []string {
	r := e.response("completed")
	r["usage"] = responsesUsage(usage)
	return []string{e.event("response.completed", obj{"response": r})}
}

func (e *responsesEncoder) incomplete(reason string, usage *protocol.Usage) []string {
	r := e.response("incomplete")
	r["incomplete_details"] = obj{"reason": reason}
	r["usage"] = responsesUsage(usage)
	return []string{e.event("response.incomplete", obj{"response": r})}
}

func (e *responsesEncoder) fail(code, message string) []string {
	r := e.response("failed")
	r["error"] = obj{"code": code, "message": message}
	return []string{e.event("response.failed", obj{"response": r})}
}

func (e *responsesEncoder) errorEvent(code, message string) []string {
	return []string{e.event("error", obj{"code": code, "message": message, "param": nil})}
}

func (e *responsesEncoder) ping() string { return ": ping\n\n" }
