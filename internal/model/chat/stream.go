package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// afterFinish is how long the usage and the end mark may take when the model has
// said that it is finished: neither is sent by every server.
const afterFinish = 2 * time.Second

// A reader turns the chunks of one response into items.
type reader struct {
	stream *wire.Stream
	tools  []model.ToolSpec
	sink   model.Sink
	end    model.End
	finish string
	items  int // begun so far

	text      piece
	reasoning piece
	member    string // in which reasoning comes
	details   []json.RawMessage
	calls     []*call
	byIndex   map[int64]*call
	splitter  splitter
	untagged  bool // reasoning stood in the text, and is not sent back
}

// A piece is a text that grows.
type piece struct {
	index int
	begun bool
	space string // white space that waits for something to follow it
	all   strings.Builder
}

// read passes a response to sink until its end.
func read(s *wire.Stream, tools []model.ToolSpec, sink model.Sink) (model.End, error) {
	r := &reader{stream: s, tools: tools, sink: sink, byIndex: map[int64]*call{}}
	if whole := s.Whole(); whole != nil {
		if err := r.chunk(whole); err != nil {
			return r.end, err
		}
		return r.done()
	}
	for {
		data, err := s.Next()
		if err != nil {
			// Once it is finished only usage and the end mark can be missing.
			if e, ok := err.(*protocol.Error); ok && r.finish != "" && e.Kind == protocol.ErrorConnection {
				return r.done()
			}
			return r.end, err
		}
		if isDone(data) {
			if r.finish == "" && !r.whole() {
				return r.end, &protocol.Error{Kind: protocol.ErrorModel, Retry: true, Message: "the response ended without saying that it is finished"}
			}
			s.Finish()
			return r.done()
		}
		if !wire.IsJSON(data) {
			continue
		}
		if err := r.chunk(data); err != nil {
			if r.finish != "" {
				return r.done()
			}
			return r.end, err
		}
	}
}

// isDone reports whether data is the end mark; some servers leave out the
// brackets.
func isDone(data []byte) bool {
	switch string(bytes.TrimSpace(data)) {
	case "[DONE]", "DONE":
		return true
	}
	return false
}

// chunk takes one chunk of the response.
func (r *reader) chunk(data []byte) error {
	var choices, object []byte
	m := wire.Scan(data)
	for m.Next() {
		switch string(m.Key) {
		case "id":
			if r.end.ID == "" {
				r.end.ID, _ = wire.String(m.Value)
			}
		case "choices":
			choices = m.Value
		case "usage":
			r.usage(m.Value)
		case "object":
			object = m.Value
		case "error", "error_message":
			if string(m.Value) != "null" {
				return r.stream.Failed(wire.ParseComplaint(data))
			}
		}
	}
	if m.Err() != nil {
		return wire.Garbled(data)
	}
	if string(object) == `"error"` {
		return r.stream.Failed(wire.ParseComplaint(data))
	}
	if choices == nil || string(choices) == "null" {
		return nil
	}
	list := wire.ScanArray(choices)
	for list.Next() {
		if !r.choice(list.Value) {
			return wire.Garbled(data)
		}
	}
	if list.Err() != nil {
		return wire.Garbled(data)
	}
	return nil
}

// choice takes one choice of a chunk. Only the first of several answers counts.
func (r *reader) choice(data []byte) bool {
	var delta []byte
	finish := ""
	m := wire.Scan(data)
	for m.Next() {
		switch string(m.Key) {
		case "index":
			if n, ok := wire.Int(m.Value); ok && n != 0 {
				return true
			}
		case "delta", "message": // a server may send the whole message at once
			if string(m.Value) != "null" {
				delta = m.Value
			}
		case "finish_reason":
			finish, _ = wire.String(m.Value)
		}
	}
	if m.Err() != nil {
		return false
	}
	// The last piece of text may come together with the finish.
	if delta != nil && !r.delta(delta) {
		return false
	}
	if finish != "" && r.finish == "" {
		r.finish = finish
		r.stream.Hurry(afterFinish)
	}
	return true
}

// reasoningMembers are the places in which servers put reasoning, the first
// that is there counts.
var reasoningMembers = []string{"reasoning_content", "reasoning", "reasoning_text", "thinking"}

func (r *reader) delta(data []byte) bool {
	var content, refusal, calls, function, details []byte
	var reasons [4][]byte
	m := wire.Scan(data)
	for m.Next() {
		switch string(m.Key) {
		case "content":
			content = m.Value
		case "refusal":
			refusal = m.Value
		case "tool_calls":
			calls = m.Value
		case "function_call":
			function = m.Value
		case "reasoning_details":
			details = m.Value
		case reasoningMembers[0]:
			reasons[0] = m.Value
		case reasoningMembers[1]:
			reasons[1] = m.Value
		case reasoningMembers[2]:
			reasons[2] = m.Value
		case reasoningMembers[3]:
			reasons[3] = m.Value
		}
	}
	if m.Err() != nil {
		return false
	}
	for i, raw := range reasons {
		if text := textOf(raw); text != "" {
			r.think(reasoningMembers[i], text)
			break
		}
	}
	r.detail(details)
	r.content(content)
	if text, ok := wire.String(refusal); ok {
		r.grow(&r.text, protocol.DeltaMessage, text)
	}
	return r.toolCalls(calls) && r.functionCall(function)
}

func (r *reader) think(member, text string) {
	if r.member == "" {
		r.member = member
	}
	r.grow(&r.reasoning, protocol.DeltaReasoning, text)
}

// detail keeps signed or encrypted reasoning, which goes back as it came.
func (r *reader) detail(raw []byte) {
	if raw == nil {
		return
	}
	list := wire.ScanArray(raw)
	for list.Next() {
		r.details = append(r.details, append(json.RawMessage(nil), list.Value...))
	}
	if len(r.details) > 0 { // it may be all there is of the reasoning
		r.begin(&r.reasoning)
	}
}

// textOf is a text that stands in a string, or in an object as text or content.
func textOf(raw []byte) string {
	if s, ok := wire.String(raw); ok {
		return s
	}
	m := wire.Scan(raw)
	for m.Next() {
		if k := string(m.Key); k == "text" || k == "content" {
			if s, ok := wire.String(m.Value); ok {
				return s
			}
		}
	}
	return ""
}

// content takes a piece of text, or of a list of parts.
func (r *reader) content(raw []byte) {
	if s, ok := wire.String(raw); ok {
		r.say(s)
		return
	}
	if raw == nil {
		return
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return
	}
	for _, p := range parts {
		for _, t := range p.Thinking {
			r.think(reasoningMembers[0], t.Text)
		}
		r.say(p.Text)
	}
}

// say takes a piece of the text, in which reasoning and calls may stand.
func (r *reader) say(piece string) {
	thought, text := r.splitter.split(piece)
	if thought != "" && r.member == "" {
		r.untagged = true
		r.grow(&r.reasoning, protocol.DeltaReasoning, thought)
	}
	r.grow(&r.text, protocol.DeltaMessage, text)
}

// closeText takes what the splitter still holds: calls, or a text that only began like one.
func (r *reader) closeText() {
	held := r.splitter.held
	r.splitter.held = ""
	switch r.splitter.state {
	case splitThinking:
		r.untagged = true
		r.grow(&r.reasoning, protocol.DeltaReasoning, held)
		return
	case splitCall:
		calls := callsIn(r.tools, held)
		if len(calls) > 0 && len(r.calls) == 0 {
			for _, f := range calls {
				r.calls = append(r.calls, &call{index: r.items, name: f.Name})
				r.calls[len(r.calls)-1].arguments.WriteString(f.text())
				r.items++
			}
			return
		}
	}
	r.grow(&r.text, protocol.DeltaMessage, held)
}

// grow passes on a piece of text. White space alone does not begin one: some
// models send it before a call.
func (r *reader) grow(p *piece, kind protocol.DeltaKind, text string) {
	if text == "" {
		return
	}
	if !p.begun {
		p.space += text
		if strings.TrimSpace(p.space) == "" {
			return
		}
		text, p.space = p.space, ""
		r.begin(p)
	}
	p.all.WriteString(text)
	r.sink.Delta(p.index, kind, text)
}

// begin makes a text an item.
func (r *reader) begin(p *piece) {
	if !p.begun {
		p.index, p.begun = r.items, true
		r.items++
	}
}

// whole reports whether a response that ended without a finish is complete all
// the same.
func (r *reader) whole() bool {
	r.closeText()
	for _, c := range r.calls {
		if !json.Valid([]byte(c.arguments.String())) {
			return false
		}
	}
	return r.items > 0
}

func (r *reader) usage(raw []byte) {
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		CacheHit   int64 `json:"prompt_cache_hit_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if string(raw) == "null" || json.Unmarshal(raw, &u) != nil {
		return
	}
	r.end.Usage = &protocol.Usage{
		Input: u.Prompt, Cached: max(u.Details.Cached, u.CacheHit), Output: u.Completion, Reasoning: u.Output.Reasoning,
		Total: max(u.Total, u.Prompt+u.Completion),
	}
}

// done passes on the finished items, in the order in which they began.
func (r *reader) done() (model.End, error) {
	r.closeText()
	err := r.failure()
	for i := range r.items {
		switch {
		case r.reasoning.begun && r.reasoning.index == i:
			r.sink.Done(i, &protocol.Reasoning{Text: r.reasoning.all.String(), Raw: r.rawReasoning()})
		case r.text.begun && r.text.index == i:
			r.sink.Done(i, &protocol.AssistantMessage{Text: r.text.all.String(), Partial: err != nil})
		case err == nil:
			if e := r.doneCall(i); e != nil {
				return r.end, e
			}
		}
	}
	if err != nil {
		return r.end, err
	}
	return r.end, nil
}

// rawReasoning is reasoning in the members in which it came. That which stood in the
// text is not sent back: models are not trained on it.
func (r *reader) rawReasoning() protocol.Raw {
	if r.untagged && len(r.details) == 0 {
		return protocol.Raw{}
	}
	b := []byte{'{'}
	if r.member != "" {
		b = wire.AppendString(b, r.member)
		b = wire.AppendString(append(b, ':'), r.reasoning.all.String())
	}
	if len(r.details) > 0 {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, `"reasoning_details":[`...)
		for i, d := range r.details {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, d...)
		}
		b = append(b, ']')
	}
	return protocol.Raw{Wire: Wire, JSON: append(b, '}')}
}

// failure is the error that the finish reason means, or nil.
func (r *reader) failure() *protocol.Error {
	switch r.finish {
	case "length", "max_tokens", "model_length":
		return &protocol.Error{
			Kind: protocol.ErrorModel, Message: "the response is incomplete: " + r.finish,
			Hint: "the model may write no more than that in one response; ask it to go on",
		}
	case "content_filter", "safety", "recitation", "blocklist", "prohibited_content":
		return &protocol.Error{Kind: protocol.ErrorModel, Message: "the service ended the response early: " + r.finish}
	case "error", "cancelled", "canceled", "abort", "insufficient_system_resource":
		return &protocol.Error{Kind: protocol.ErrorModel, Retry: true, Message: "the service ended the response early: " + r.finish}
	}
	return nil
}
