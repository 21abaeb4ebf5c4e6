package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// An event holds the members of an event that matter here, not yet decoded.
type event struct {
	kind    string
	index   int64
	delta   []byte
	block   []byte
	message []byte
	usage   []byte
}

func parse(data []byte) (event, error) {
	e := event{index: -1}
	m := wire.Scan(data)
	for m.Next() {
		switch string(m.Key) {
		case "type":
			e.kind = kindOf(m.Value)
		case "index":
			if n, ok := wire.Int(m.Value); ok {
				e.index = n
			}
		case "delta":
			e.delta = m.Value
		case "content_block":
			e.block = m.Value
		case "message":
			e.message = m.Value
		case "usage":
			e.usage = m.Value
		}
	}
	return e, m.Err()
}

// kindOf returns the kind of an event, without allocating for the one that is frequent.
func kindOf(raw []byte) string {
	if string(raw) == `"content_block_delta"` {
		return "content_block_delta"
	}
	s, _ := wire.String(raw)
	return s
}

// A reader turns the events of one response into items.
type reader struct {
	stream *wire.Stream
	tools  []model.ToolSpec
	sink   model.Sink
	end    model.End
	usage  usage
	stop   string // why the model stopped
	items  int    // begun so far
	blocks map[int64]*content
	held   *content   // a finished text, until it is known whether it is complete
	broken []*content // calls whose arguments are not JSON, until it is known why
}

// content is a block that grows.
type content struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Text  string          `json:"text"`
	Think string          `json:"thinking"`
	Sign  string          `json:"signature"`
	Data  string          `json:"data"`
	Input json.RawMessage `json:"input"`

	index int // of the item, or -1 if none has begun
	text  strings.Builder
}

// usage counts as the service does; what it did not say is nil.
type usage struct {
	Input  *int64 `json:"input_tokens"`
	Write  *int64 `json:"cache_creation_input_tokens"`
	Read   *int64 `json:"cache_read_input_tokens"`
	Output *int64 `json:"output_tokens"`
}

// read passes a response to sink until its end mark.
func read(s *wire.Stream, tools []model.ToolSpec, sink model.Sink) (model.End, error) {
	r := &reader{stream: s, tools: tools, sink: sink, blocks: map[int64]*content{}}
	if whole := s.Whole(); whole != nil {
		if !r.whole(whole) {
			return r.end, wire.Garbled(whole)
		}
		return r.finish()
	}
	for {
		data, err := s.Next()
		if err != nil {
			// Once the reason is known only the end mark can be missing.
			if e, ok := err.(*protocol.Error); ok && r.stop != "" && r.closeOpen() && len(r.blocks) == 0 && e.Kind == protocol.ErrorConnection {
				return r.finish()
			}
			return r.end, err
		}
		if !wire.IsJSON(data) {
			continue
		}
		e, err := parse(data)
		if err != nil {
			return r.end, wire.Garbled(data)
		}
		switch e.kind {
		case "error":
			return r.end, s.Failed(wire.ParseComplaint(data))
		case "message_stop":
			if r.stop != "" && !r.closeOpen() {
				return r.end, wire.Garbled(data)
			}
			return r.finish()
		}
		if !r.take(e) {
			return r.end, wire.Garbled(data)
		}
	}
}

// whole takes a response in one piece.
func (r *reader) whole(body []byte) bool {
	var m struct {
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
	}
	if json.Unmarshal(body, &m) != nil || !r.start(body) {
		return false
	}
	r.stop = m.Stop
	for i, block := range m.Content {
		if !r.begin(event{index: int64(i), block: block}) || !r.close(int64(i)) {
			return false
		}
	}
	return true
}

// take handles one event. It reports false if the event makes no sense.
func (r *reader) take(e event) bool {
	switch e.kind {
	case "message_start":
		return r.start(e.message)
	case "content_block_start":
		return r.begin(e)
	case "content_block_delta":
		return r.delta(e)
	case "content_block_stop":
		return r.close(e.index)
	case "message_delta":
		var d struct {
			Stop string `json:"stop_reason"`
		}
		if json.Unmarshal(e.delta, &d) != nil {
			return false
		}
		if d.Stop != "" {
			r.stop = d.Stop
		}
		return r.count(e.usage)
	}
	return true
}

func (r *reader) start(raw []byte) bool {
	var m struct {
		ID    string          `json:"id"`
		Usage json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	r.end.ID = m.ID
	return r.count(m.Usage)
}

// count takes what a service says of the cost; what it says later counts.
func (r *reader) count(raw []byte) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	if json.Unmarshal(raw, &r.usage) != nil {
		return false
	}
	value := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	u := protocol.Usage{Cached: value(r.usage.Read), CacheWrite: value(r.usage.Write), Output: value(r.usage.Output)}
	u.Input = value(r.usage.Input) + u.Cached + u.CacheWrite
	u.Total = u.Input + u.Output
	r.end.Usage = &u
	return true
}

// begin opens a block. What the service does by itself is no item of ours.
func (r *reader) begin(e event) bool {
	c := &content{}
	if json.Unmarshal(e.block, c) != nil || e.index < 0 {
		return false
	}
	if !r.closeOpen() { // a service that does not say where a block ends
		return false
	}
	c.index = -1
	r.blocks[e.index] = c
	r.release(false)
	switch c.Type {
	case "thinking":
		r.item(c)
		r.grow(c, protocol.DeltaReasoning, c.Think)
	case "redacted_thinking":
		r.item(c)
	case "tool_use":
		r.item(c)
		return c.ID != "" && c.Name != ""
	case "text":
		r.grow(c, protocol.DeltaMessage, c.Text)
	}
	return true
}

func (r *reader) item(c *content) {
	if c.index < 0 {
		c.index = r.items
		r.items++
	}
}

func (r *reader) grow(c *content, kind protocol.DeltaKind, text string) {
	if text == "" {
		return
	}
	r.item(c)
	c.text.WriteString(text)
	r.sink.Delta(c.index, kind, text)
}

func (r *reader) delta(e event) bool {
	c := r.blocks[e.index]
	if c == nil {
		return false
	}
	var text, sign, think, input []byte
	m := wire.Scan(e.delta)
	for m.Next() {
		switch string(m.Key) {
		case "text":
			text = m.Value
		case "thinking":
			think = m.Value
		case "signature":
			sign = m.Value
		case "partial_json":
			input = m.Value
		}
	}
	if m.Err() != nil {
		return false
	}
	switch c.Type {
	case "text":
		s, _ := wire.String(text)
		r.grow(c, protocol.DeltaMessage, s)
	case "thinking":
		s, _ := wire.String(think)
		r.grow(c, protocol.DeltaReasoning, s)
		if s, ok := wire.String(sign); ok {
			c.Sign += s
		}
	case "tool_use":
		s, _ := wire.String(input)
		c.text.WriteString(s)
	}
	return true
}

// closeOpen finishes the blocks whose end the service did not mark, unless the response broke off.
func (r *reader) closeOpen() bool {
	switch r.stop {
	case "", "end_turn", "tool_use", "stop_sequence":
	default:
		return true
	}
	for _, index := range slices.Sorted(maps.Keys(r.blocks)) {
		if !r.close(index) {
			return false
		}
	}
	return true
}

// close finishes a block.
func (r *reader) close(index int64) bool {
	c := r.blocks[index]
	if c == nil {
		return false
	}
	delete(r.blocks, index)
	switch c.Type {
	case "text":
		if c.index >= 0 {
			r.held = c
		}
	case "thinking":
		raw := wire.AppendString([]byte(`{"type":"thinking","thinking":`), c.text.String())
		raw = append(wire.AppendString(append(raw, `,"signature":`...), c.Sign), '}')
		r.sink.Done(c.index, &protocol.Reasoning{Text: c.text.String(), Raw: protocol.Raw{Wire: Wire, JSON: raw}})
	case "redacted_thinking":
		raw := append(wire.AppendString([]byte(`{"type":"redacted_thinking","data":`), c.Data), '}')
		r.sink.Done(c.index, &protocol.Reasoning{Raw: protocol.Raw{Wire: Wire, JSON: raw}})
	case "tool_use":
		r.call(c)
	}
	return true
}

// release passes on a text that was held back.
func (r *reader) release(cut bool) {
	if r.held == nil {
		return
	}
	r.sink.Done(r.held.index, &protocol.AssistantMessage{Text: r.held.text.String(), Partial: cut})
	r.held = nil
}

// call passes on a call. A block is also closed when the response had to stop in
// the midst of its arguments: those are then not JSON. But a model may also have written
// them so, and has to be told.
func (r *reader) call(c *content) {
	arguments := c.text.String()
	if arguments == "" && len(c.Input) > 0 {
		arguments = string(c.Input)
	}
	if arguments != "" && !json.Valid([]byte(arguments)) {
		r.broken = append(r.broken, c)
		return
	}
	r.sink.Done(c.index, wire.FromFunction(r.tools, c.ID, c.Name, arguments))
}

// finish says how the response ended.
func (r *reader) finish() (model.End, error) {
	err := r.failure()
	r.release(err != nil && r.stop != "pause_turn")
	if err != nil {
		return r.end, err
	}
	for _, c := range r.broken {
		r.sink.Done(c.index, wire.FromFunction(r.tools, c.ID, c.Name, c.text.String()))
	}
	r.stream.Finish()
	return r.end, nil
}

// failure is the error that the stop reason means, or nil.
func (r *reader) failure() *protocol.Error {
	switch r.stop {
	case "max_tokens":
		return &protocol.Error{
			Kind: protocol.ErrorModel, Message: "the response is incomplete: max_tokens",
			Hint: "the model may write no more than that in one response; ask it to go on",
		}
	case "model_context_window_exceeded":
		return wire.Complaint{Code: "context_length_exceeded", Message: "the conversation fills the context window of the model"}.Error()
	case "refusal":
		return &protocol.Error{Kind: protocol.ErrorModel, Message: "the service stopped the response: refusal"}
	}
	if len(r.blocks) > 0 || len(r.broken) > 0 && r.stop != "tool_use" {
		return &protocol.Error{Kind: protocol.ErrorModel, Retry: true, Message: "the response ended in the midst of a block"}
	}
	if r.stop == "pause_turn" {
		// What it said so far stays in the history, so asking again goes on from there.
		return &protocol.Error{Kind: protocol.ErrorModel, Retry: true, Message: "the service paused the response"}
	}
	return nil
}
