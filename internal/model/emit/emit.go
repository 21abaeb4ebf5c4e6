// Package emit writes the Responses wire as the service does: [Encoder] turns what
// a model says into the events of one response, in the order and with the members that
// the real service sends. The scripted server and the demo model speak through it.
package emit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Object is a JSON object.
type Object = map[string]any

type obj = Object

// A Call is a call that a model makes.
type Call struct {
	Kind      protocol.CallKind // function if empty
	ID        string
	Name      string
	Arguments string
}

// Marshal is v as JSON on one line, without escapes that only HTML needs.
func Marshal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // maps of strings always marshal
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// An Encoder writes one response. Every string that its methods return is one
// whole event.
type Encoder struct {
	Number int    // of the response; ids are made of it
	Model  string // as the request named it

	seq    int
	output []obj // finished items
	next   int   // output_index of the next item
}

func (e *Encoder) event(kind string, members obj) string {
	members["sequence_number"] = e.seq
	e.seq++
	// The type comes first, as the service sends it.
	rest := strings.TrimPrefix(Marshal(members), "{")
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + rest + "\n\n"
}

func (e *Encoder) id(prefix string, index int) string {
	return fmt.Sprintf("%s_%d_%d", prefix, e.Number, index)
}

func (e *Encoder) response(status string) obj {
	return obj{
		"id": fmt.Sprintf("resp_%d", e.Number), "object": "response", "created_at": 0, "status": status,
		"model": e.Model, "error": nil, "incomplete_details": nil, "output": e.output, "usage": nil,
	}
}

// Start is what comes before everything else.
func (e *Encoder) Start() []string {
	e.output = []obj{}
	return []string{
		e.event("response.created", obj{"response": e.response("in_progress")}),
		e.event("response.in_progress", obj{"response": e.response("in_progress")}),
	}
}

func (e *Encoder) added(index int, item obj) string {
	return e.event("response.output_item.added", obj{"output_index": index, "item": item})
}

func (e *Encoder) done(index int, item obj) string {
	e.output = append(e.output, item)
	return e.event("response.output_item.done", obj{"output_index": index, "item": item})
}

// Say is a message that arrives in pieces; one that is not whole is not finished.
func (e *Encoder) Say(deltas []string, whole bool) []string {
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

// Think is reasoning in sections, each in pieces.
func (e *Encoder) Think(parts [][]string) []string {
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

func (e *Encoder) item(c Call, index int, status, arguments string) obj {
	if c.Kind == protocol.CallCustom {
		return obj{"type": "custom_tool_call", "id": e.id("ctc", index), "status": status, "call_id": c.ID, "name": c.Name, "input": arguments}
	}
	return obj{"type": "function_call", "id": e.id("fc", index), "status": status, "call_id": c.ID, "name": c.Name, "arguments": arguments}
}

// Calls are calls whose arguments arrive interleaved; if they are not whole they are not finished.
func (e *Encoder) Calls(calls []Call, whole bool) []string {
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
			events = append(events, e.event(kind, obj{"item_id": id, "output_index": first + i, "delta": Halves(c.Arguments)[half]}))
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

// Halves cuts a text in two, between characters.
func Halves(s string) [2]string {
	runes := []rune(s)
	n := len(runes) / 2
	return [2]string{string(runes[:n]), string(runes[n:])}
}

func usageObject(u *protocol.Usage) any {
	if u == nil {
		return nil
	}
	return obj{
		"input_tokens": u.Input, "input_tokens_details": obj{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": obj{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Total,
	}
}

// Response is the whole response, as a request without a stream is answered.
func (e *Encoder) Response(usage *protocol.Usage) Object {
	r := e.response("completed")
	r["usage"] = usageObject(usage)
	return r
}

// End is the end of a response that was completed.
func (e *Encoder) End(usage *protocol.Usage) []string {
	return []string{e.event("response.completed", obj{"response": e.Response(usage)})}
}

// Incomplete is the end of a response that the service cut short.
func (e *Encoder) Incomplete(reason string, usage *protocol.Usage) []string {
	r := e.response("incomplete")
	r["incomplete_details"] = obj{"reason": reason}
	r["usage"] = usageObject(usage)
	return []string{e.event("response.incomplete", obj{"response": r})}
}

// Fail is the end of a response that failed.
func (e *Encoder) Fail(code, message string) []string {
	r := e.response("failed")
	r["error"] = obj{"code": code, "message": message}
	return []string{e.event("response.failed", obj{"response": r})}
}

// Error is the bare error event.
func (e *Encoder) Error(code, message string) []string {
	return []string{e.event("error", obj{"code": code, "message": message, "param": nil})}
}

// Ping is a sign of life that means nothing.
func (e *Encoder) Ping() string { return ": ping\n\n" }
