package convert

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// object is a JSON object that is written as it stands.
type object = map[string]any

// A Rollout is a conversation in the form in which Codex keeps and resumes its own. Add its events, then Write it.
type Rollout struct {
	meta    object
	lines   []rolloutLine
	context object            // of the turn at hand
	custom  map[p.CallID]bool // calls whose input is free text
	user    []object          // the user's messages, for a compaction
}

type rolloutLine struct {
	at      time.Time
	turn    p.TurnID
	kind    string
	payload any
}

// codexVersion is the version whose form is written.
const codexVersion = "0.166.0"

func (r *Rollout) add(e p.Event, kind string, payload any) {
	r.lines = append(r.lines, rolloutLine{e.Time, e.Turn, kind, payload})
}

// Add takes the next event of a conversation.
func (r *Rollout) Add(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		r.start(e, b)
	case *p.Configured:
		r.configure(b.Settings)
	case *p.Reverted:
		r.lines = slices.DeleteFunc(r.lines, func(l rolloutLine) bool { return l.turn >= b.Before })
	case *p.TurnStarted:
		r.add(e, "event_msg", object{"type": "task_started", "turn_id": turnName(e.Turn)})
		context := object{"turn_id": turnName(e.Turn)}
		for k, v := range r.context {
			context[k] = v
		}
		r.add(e, "turn_context", context)
	case *p.UserMessage:
		r.message(e, b)
	case *p.AssistantMessage:
		r.add(e, "event_msg", r.completed(e, object{"type": "AgentMessage", "id": b.Item.String(), "content": []object{{"type": "Text", "text": b.Text}}}))
		r.add(e, "response_item", object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": b.Text}}})
	case *p.Reasoning:
		if b.Raw.Wire == "responses" { // nothing else goes back
			r.add(e, "response_item", b.Raw.JSON)
		}
	case *p.ToolCall:
		r.call(e, b)
	case *p.ToolOutput:
		r.output(e, b)
	case *p.Compacted:
		r.compacted(e, b)
	case *p.TurnEnded:
		r.end(e, b)
	}
}

func (r *Rollout) start(e p.Event, b *p.ConversationStarted) {
	r.custom = map[p.CallID]bool{}
	r.meta = object{
		"id": b.ID, "session_id": b.ID, "timestamp": codexTime(b.ID.Time()), "cwd": b.Settings.Cwd, "originator": "fermata",
		"cli_version": codexVersion, "source": "exec", "thread_source": "user", "model_provider": nil,
	}
	r.lines = append(r.lines, rolloutLine{at: e.Time, kind: "session_meta", payload: r.meta})
	r.configure(b.Settings)
}

// configure takes the settings of the turns that follow. Codex's own settings count when it resumes.
func (r *Rollout) configure(s p.Settings) {
	r.context = object{"cwd": s.Cwd, "approval_policy": "on-request", "sandbox_policy": object{"type": "read-only"}, "model": s.Model, "summary": "auto"}
}

func turnName(t p.TurnID) string { return "turn-" + strconv.Itoa(int(t)) }

func codexTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// completed is the event by which an item is shown.
func (r *Rollout) completed(e p.Event, item object) object {
	at := e.Time.UnixMilli()
	return object{"type": "item_completed", "thread_id": r.meta["id"], "turn_id": turnName(e.Turn), "item": item, "started_at_ms": at, "completed_at_ms": at}
}

func (r *Rollout) message(e p.Event, b *p.UserMessage) {
	var content, shown []object
	for _, c := range b.Content {
		if c.Type == p.ContentImage {
			content = append(content, object{"type": "input_image", "image_url": c.ImageURL})
			continue
		}
		content = append(content, object{"type": "input_text", "text": c.Text})
		shown = append(shown, object{"type": "text", "text": c.Text, "text_elements": []string{}})
	}
	item := object{"type": "message", "role": "user", "content": content}
	r.user = append(r.user, item)
	r.add(e, "response_item", item)
	r.add(e, "event_msg", r.completed(e, object{"type": "UserMessage", "id": b.Item.String(), "content": shown}))
}

// callID names a call. The ids of services are not unique in a conversation.
func callID(id p.CallID) string { return "call_" + wireName(id.String()) }

func (r *Rollout) call(e p.Event, b *p.ToolCall) {
	item := object{"type": "function_call", "name": b.Name, "arguments": b.Arguments, "call_id": callID(b.Call)}
	if b.Kind == p.CallCustom {
		item = object{"type": "custom_tool_call", "name": b.Name, "input": b.Arguments, "call_id": callID(b.Call)}
		r.custom[b.Call] = true
	}
	r.add(e, "response_item", item)
}

func (r *Rollout) output(e p.Event, b *p.ToolOutput) {
	kind := "function_call_output"
	if r.custom[b.Call] {
		kind = "custom_tool_call_output"
	}
	var output any = b.Output
	if len(b.Content) > 0 {
		parts := []object{{"type": "input_text", "text": b.Output}}
		for _, c := range b.Content {
			parts = append(parts, object{"type": "input_image", "image_url": c.ImageURL})
		}
		output = parts
	}
	r.add(e, "response_item", object{"type": kind, "call_id": callID(b.Call), "output": output})
}

// compacted replaces what came before: the user's messages stay, with the summary behind them.
func (r *Rollout) compacted(e p.Event, b *p.Compacted) {
	history := slices.Clone(r.user)
	history = append(history, object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": b.Summary}}})
	r.add(e, "compacted", object{"message": b.Summary, "replacement_history": history})
}

func (r *Rollout) end(e p.Event, b *p.TurnEnded) {
	if b.Reason == p.Completed {
		r.add(e, "event_msg", object{"type": "task_complete", "turn_id": turnName(e.Turn), "last_agent_message": nil})
		return
	}
	r.add(e, "event_msg", object{"type": "turn_aborted", "turn_id": turnName(e.Turn), "reason": "interrupted"})
}

// Write writes the rollout, one JSON object a line.
func (r *Rollout) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	for i, l := range r.lines {
		err := enc.Encode(struct {
			Timestamp string `json:"timestamp"`
			Ordinal   int    `json:"ordinal"`
			Type      string `json:"type"`
			Payload   any    `json:"payload"`
		}{codexTime(l.at), i, l.kind, l.payload})
		if err != nil {
			return err
		}
	}
	return nil
}

// RolloutName is where Codex looks for the rollout of a conversation, below its home.
func RolloutName(id p.ConversationID) string {
	at := id.Time()
	return "sessions/" + at.Format("2006/01/02") + "/rollout-" + at.Format("2006-01-02T15-04-05") + "-" + string(id) + ".jsonl"
}
