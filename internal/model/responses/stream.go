package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// An event holds the members of an event that matter here, not yet decoded.
type event struct {
	kind     string
	output   int64  // output_index, or -1
	id       string // of the item, if the event names it
	summary  int64  // summary_index, or -1
	delta    []byte
	item     []byte
	response []byte
	err      []byte
	whole    []byte // arguments or input, when they are complete
}

func parse(data []byte) (event, error) {
	e := event{output: -1, summary: -1}
	m := wire.Scan(data)
	for m.Next() {
		switch string(m.Key) {
		case "type":
			e.kind = kindOf(m.Value)
		case "output_index":
			if n, ok := wire.Int(m.Value); ok {
				e.output = n
			}
		case "summary_index":
			if n, ok := wire.Int(m.Value); ok {
				e.summary = n
			}
		case "delta":
			e.delta = m.Value
		case "item_id":
			e.id, _ = wire.String(m.Value)
		case "item":
			e.item = m.Value
		case "response":
			e.response = m.Value
		case "error":
			e.err = m.Value
		case "arguments", "input":
			e.whole = m.Value
		}
	}
	return e, m.Err()
}

// kindOf returns the kind of an event, without allocating for the one that is frequent.
func kindOf(raw []byte) string {
	if string(raw) == `"response.output_text.delta"` {
		return "response.output_text.delta"
	}
	s, _ := wire.String(raw)
	return s
}

// A reader turns the events of one response into items.
type reader struct {
	stream *wire.Stream
	tools  []model.ToolSpec
	sink   model.Sink
	places places
	thinks map[int]*thinking
	raw    bool                     // prefer the reasoning itself to its summary
	closed []bool                   // by item: it is finished, and what still comes for it is ignored
	texts  map[int]*strings.Builder // by item: what came of its text or its arguments
	whole  map[int]string           // by item: its arguments, when they were complete
	seen   map[string]bool          // ids of finished items
}

// thinking is what was passed on of an item of reasoning.
type thinking struct {
	raw     bool  // the reasoning itself, not a summary of it
	summary int64 // the section at hand
	any     bool
}

// read passes a response to sink until its end mark.
func read(s *wire.Stream, tools []model.ToolSpec, sink model.Sink, raw bool) (model.End, error) {
	r := &reader{
		stream: s, tools: tools, sink: sink, places: newPlaces(), thinks: map[int]*thinking{},
		texts: map[int]*strings.Builder{}, whole: map[int]string{}, seen: map[string]bool{}, raw: raw,
	}
	if whole := s.Whole(); whole != nil {
		return r.end(wholeEvent(whole))
	}
	for {
		data, err := s.Next()
		if err != nil {
			return model.End{}, err
		}
		if !wire.IsJSON(data) {
			continue
		}
		e, err := parse(data)
		if err != nil {
			return model.End{}, wire.Garbled(data)
		}
		end, over, err := r.take(e, data)
		if over {
			if err == nil {
				s.Finish()
			}
			return end, err
		}
	}
}

// wholeEvent is a response in one piece as the event that ends it.
func wholeEvent(body []byte) event {
	e := event{kind: "response.completed", response: body, output: -1, summary: -1}
	m := wire.Scan(body)
	for m.Next() {
		if string(m.Key) != "status" {
			continue
		}
		if status, _ := wire.String(m.Value); status == "failed" || status == "incomplete" {
			e.kind = "response." + status
		}
	}
	return e
}

// take handles one event and says whether it was the last.
func (r *reader) take(e event, data []byte) (end model.End, over bool, err error) {
	switch e.kind {
	case "response.output_text.delta", "response.refusal.delta":
		r.delta(e, "message", protocol.DeltaMessage)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.think(e)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		if text, ok := wire.String(e.delta); ok {
			r.keep(r.index(e, "call"), text)
		}
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		if s, ok := wire.String(e.whole); ok && s != "" {
			r.whole[r.index(e, "call")] = s
		}
	case "response.output_item.added":
		if kind := itemKind(e.item); kind != "" {
			r.index(named(e), kind)
		}
	case "response.output_item.done":
		if !r.done(e) {
			return end, true, wire.Garbled(data)
		}
	case "response.completed", "response.incomplete", "response.failed":
		end, err = r.end(e)
		return end, true, err
	case "error":
		return end, true, r.stream.Failed(errorEvent(data))
	case "":
		if e.err != nil {
			return end, true, r.stream.Failed(wire.ParseComplaint(data))
		}
	}
	return end, false, nil
}

// itemKind is what kind of item this is for us: message, reasoning, call, or
// nothing.
func itemKind(raw []byte) string {
	m := wire.Scan(raw)
	for m.Next() {
		if string(m.Key) != "type" {
			continue
		}
		switch string(m.Value) {
		case `"message"`:
			return "message"
		case `"reasoning"`:
			return "reasoning"
		case `"function_call"`, `"custom_tool_call"`, `"local_shell_call"`:
			return "call"
		}
		return ""
	}
	return ""
}

// index is the number of the item that e is about; a new one begins with it.
func (r *reader) index(e event, kind string) int {
	i := r.places.find(e, kind, r.closed)
	if i == len(r.closed) {
		r.closed = append(r.closed, false)
	}
	return i
}

func (r *reader) delta(e event, kind string, show protocol.DeltaKind) {
	text, ok := wire.String(e.delta)
	if !ok || text == "" {
		return
	}
	if i := r.index(e, kind); !r.closed[i] {
		r.keep(i, text)
		r.sink.Delta(i, show, text)
	}
}

// keep collects what comes of an item: a service may leave it out of the finished one.
func (r *reader) keep(i int, text string) {
	if r.texts[i] == nil {
		r.texts[i] = &strings.Builder{}
	}
	r.texts[i].WriteString(text)
}

// collected is what came of an item.
func (r *reader) collected(i int) string {
	if s := r.whole[i]; s != "" {
		return s
	}
	if r.texts[i] == nil {
		return ""
	}
	return r.texts[i].String()
}

// think passes on a piece of reasoning. A service may send a summary and the
// reasoning itself; what came first is what is shown, unless the latter is preferred.
func (r *reader) think(e event) {
	text, ok := wire.String(e.delta)
	if !ok || text == "" {
		return
	}
	i := r.index(e, "reasoning")
	if r.closed[i] {
		return
	}
	raw := e.kind == "response.reasoning_text.delta"
	if r.raw && !raw {
		return // shown when the item is finished, if it holds nothing else
	}
	t := r.thinks[i]
	if t == nil {
		t = &thinking{raw: raw, summary: e.summary}
		r.thinks[i] = t
	}
	if t.raw != raw {
		return
	}
	if t.any && !raw && t.summary != e.summary {
		r.sink.Delta(i, protocol.DeltaReasoning, sectionBreak)
	}
	t.any, t.summary = true, e.summary
	r.sink.Delta(i, protocol.DeltaReasoning, text)
}

// sectionBreak stands between the sections of a summary.
const sectionBreak = "\n\n"

// An item is a finished item as the service sends it.
type item struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"`
	Content   []part `json:"content"`
	Summary   []part `json:"summary"`

	Action json.RawMessage `json:"action"`
}

type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// done passes on a finished item. It reports false if the item cannot be read.
func (r *reader) done(e event) bool {
	kind := itemKind(e.item)
	if kind == "" {
		return e.item != nil
	}
	var it item
	if json.Unmarshal(e.item, &it) != nil {
		return false
	}
	i := r.index(named(e), kind)
	if e.output < 0 {
		delete(r.places.open, kind)
	}
	if r.closed[i] {
		return true
	}
	r.closed[i] = true
	if it.ID != "" {
		r.seen[it.ID] = true
	}
	raw := protocol.Raw{Wire: Wire, JSON: append(json.RawMessage(nil), e.item...)}
	switch kind {
	case "message":
		text := join(it.Content, "")
		if text == "" {
			if text = r.collected(i); text != "" {
				raw = protocol.Raw{} // it does not say what was said
			}
		}
		if text != "" {
			r.sink.Done(i, &protocol.AssistantMessage{Text: text, Partial: it.Status == "incomplete", Raw: raw})
		}
	case "reasoning":
		r.sink.Done(i, &protocol.Reasoning{Text: r.thought(i, it), Raw: raw})
	case "call":
		if it.Status == "incomplete" {
			return true // its arguments did not arrive whole
		}
		return r.doneCall(i, it, raw)
	}
	return true
}

// doneCall passes on a call. Arguments that the finished item lacks are those that
// came before.
func (r *reader) doneCall(i int, it item, raw protocol.Raw) bool {
	call := it.call()
	if call.WireID == "" {
		call.WireID = it.ID
	}
	if call.WireID == "" || call.Name == "" {
		return false
	}
	if call.Arguments == "" {
		if call.Arguments = r.collected(i); call.Arguments != "" {
			raw = protocol.Raw{}
		}
	}
	if call.Arguments == "" && call.Kind == protocol.CallFunction {
		call.Arguments, raw = "{}", protocol.Raw{}
	}
	if name := wire.ToolName(r.tools, call.Name); name != call.Name {
		call.Name, raw = name, protocol.Raw{}
	}
	call.Raw = raw
	r.sink.Done(i, call)
	return true
}

func join(parts []part, sep string) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text + p.Refusal
	}
	return strings.Join(texts, sep)
}

// thought is the text of reasoning, the same that its deltas were.
func (r *reader) thought(i int, it item) string {
	t := r.thinks[i]
	if t != nil && t.raw || t == nil && (len(it.Summary) == 0 || r.raw && len(it.Content) > 0) {
		return join(it.Content, "")
	}
	return join(it.Summary, sectionBreak)
}

func (it item) call() *protocol.ToolCall {
	switch it.Type {
	case "custom_tool_call":
		return &protocol.ToolCall{WireID: it.CallID, Kind: protocol.CallCustom, Name: it.Name, Arguments: it.Input}
	case "local_shell_call":
		id := it.CallID
		if id == "" {
			id = it.ID
		}
		return &protocol.ToolCall{WireID: id, Kind: protocol.CallLocalShell, Name: "local_shell", Arguments: string(it.Action)}
	}
	return &protocol.ToolCall{WireID: it.CallID, Kind: protocol.CallFunction, Name: it.Name, Arguments: it.Arguments}
}

// A response is what the last event says of the whole.
type response struct {
	ID         string            `json:"id"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   int64 `json:"input_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Output        int64 `json:"output_tokens"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
		Total int64 `json:"total_tokens"`
	} `json:"usage"`
}

// end says how the response ended.
func (r *reader) end(e event) (model.End, error) {
	var resp response
	if e.response != nil && json.Unmarshal(e.response, &resp) != nil {
		return model.End{}, wire.Garbled(e.response)
	}
	end := model.End{ID: resp.ID}
	if u := resp.Usage; u != nil {
		end.Usage = &protocol.Usage{
			Input: u.Input, Cached: u.Details.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning, Total: u.Total,
		}
	}
	switch e.kind {
	case "response.failed":
		return end, r.stream.Failed(failure(resp.Error))
	case "response.incomplete":
		r.rest(resp.Output)
		return end, incomplete(resp)
	}
	if !r.rest(resp.Output) {
		return end, wire.Garbled(e.response)
	}
	r.closeMessages()
	return end, nil
}

// closeMessages finishes the messages that the service did not: some send text, and no item that it belongs to.
func (r *reader) closeMessages() {
	for i, closed := range r.closed {
		if text := r.collected(i); !closed && text != "" && r.places.kinds[i] == "message" {
			r.sink.Done(i, &protocol.AssistantMessage{Text: text})
		}
	}
}

// rest passes on the items that only the end of the response has.
func (r *reader) rest(output []json.RawMessage) bool {
	if len(r.seen) > 0 || slices.Contains(r.closed, true) {
		return true // the service sends items as events, and the end repeats them
	}
	for i, raw := range output {
		if !r.done(event{output: int64(i), summary: -1, item: raw}) {
			return false
		}
	}
	return true
}

func failure(raw []byte) wire.Complaint {
	if len(raw) == 0 || string(raw) == "null" {
		return wire.Complaint{}
	}
	return wire.ParseComplaint(append(append([]byte(`{"error":`), raw...), '}'))
}

func incomplete(resp response) *protocol.Error {
	reason := "no reason given"
	if resp.Incomplete != nil && resp.Incomplete.Reason != "" {
		reason = resp.Incomplete.Reason
	}
	e := &protocol.Error{Kind: protocol.ErrorModel, Message: "the response is incomplete: " + reason}
	if reason == "max_output_tokens" {
		e.Hint = "the model may write no more than that in one response; ask it to go on"
	}
	return e
}

// errorEvent reads an event of type error, whose members may stand in it or in a
// member called error.
func errorEvent(data []byte) wire.Complaint {
	var nested struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &nested) == nil && len(nested.Error) > 0 && string(nested.Error) != "null" {
		return wire.ParseComplaint(data)
	}
	var flat struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &flat) != nil {
		return wire.ParseComplaint(data)
	}
	return wire.Complaint{Code: flat.Code, Message: flat.Message, Body: data}
}
