package chat

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// A request is a body, and what is needed to understand why it was refused.
type request struct {
	body  []byte
	ids   []string // by message: the call that a tool message answers, else ""
	items []*protocol.PromptItem

	original map[string]string // ids of calls, by those that the server gets instead; nil if it gets them as they are
	wire.Extras
}

// The members that some servers refuse.
var (
	streamOptions = wire.Optional{Name: "stream_options", Words: []string{"include_usage"}}
	effort        = wire.Optional{Name: "reasoning_effort"}
	verbosity     = wire.Optional{Name: "verbosity"}
	toolChoice    = wire.Optional{Name: "tool_choice"}
	nullContent   = wire.Optional{Name: "content null", Words: []string{
		"got null", "null value", "'content'", "expected a string", "valid string", "nonetype", "content is required", "missing field `content`", "content: null",
	}}
	reasoning = wire.Optional{Name: "reasoning_content", Words: append([]string{"reasoning_details"}, reasoningMembers...)}
)

// The forms of messages that some servers, or the templates of their models, refuse. What is said instead is in the comments.
var (
	// Where reasoning is missing from a message: a blank in each message of the model that has none.
	noReasoning = wire.Optional{Name: "no reasoning", Words: []string{
		"reasoning_content is missing", "missing reasoning_content", "missing `reasoning_content`", "missing field `reasoning_content`", "reasoning_content` is required",
		"reasoning_content is required", "reasoning_content must be", "reasoning_content` must be", "must be passed back", "`reasoning_content` in the thinking mode must be passed back to the api",
	}}
	// Several calls in one message: a message for each call, with its output behind it.
	severalCalls = wire.Optional{Name: "several calls", Words: []string{
		"single tool-call", "single tool call", "only supports single", "one tool call at a time", "multiple tool calls", "multiple tool_calls", "parallel tool calls",
	}}
	// Ids of calls in the form of other services: nine letters and digits, as Mistral's.
	freeIDs = wire.Optional{Name: "ids of any form", Words: []string{"length 9", "length of 9", "9 characters", "tool call ids should be", "invalid_tool_call_id"}}
	// Images of outputs, which stand in a message of the user behind them: none.
	outputImages = wire.Optional{Name: "images of outputs", Words: []string{"roles must alternate", "roles should alternate", "alternate user/assistant", "must alternate"}}
)

// A builder writes messages. On this wire what a model says in one response is
// one message: its reasoning, its text and its calls.
type builder struct {
	request
	reasoning []byte   // members of the open message, each with a comma behind it
	users     [][]byte // what the user said since the last other message
	texts     [][]byte // of the open message, as JSON strings
	calls     [][]byte // of the open message
	open      bool
	blank     bool               // a message of the model that has no reasoning gets a blank
	rename    bool               // calls get short ids
	images    []protocol.Content // of outputs, which can only hold text
	contents  []int              // where the contents begin that can have a cache mark, the instructions first
}

// build makes the body of a request. What was encoded for an earlier one is
// copied.
func (f *format) build(p model.Prompt) request {
	head := f.Head.Get(p, encodeHead)
	size := len(head.Instructions) + len(head.Tools) + len(p.OutputSchema) + 1024
	b := &builder{request: request{items: p.Items, Extras: f.Extras()}}
	p.Items = b.forms(p.Items)
	for _, it := range p.Items {
		size += len(b.encoded(it)) + 64
	}
	b.body = make([]byte, 0, size)
	b.body = append(b.body, `{"model":`...)
	b.body = wire.AppendString(b.body, p.Model)
	b.body = append(b.body, `,"messages":[`...)
	if p.Instructions != "" {
		b.begin("")
		b.body = append(b.body, `{"role":"system","content":`...)
		b.contents = append(b.contents, len(b.body))
		b.body = append(append(b.body, head.Instructions...), '}')
	}
	unknown := wire.UnknownCallsPlace(p)
	for i, it := range p.Items {
		if i == unknown {
			b.unknownCalls(p.UnknownCalls)
		}
		b.item(it)
	}
	if unknown == len(p.Items) {
		b.unknownCalls(p.UnknownCalls)
	}
	b.flush()
	b.markCache(p.Model)
	b.body = append(b.body, `],"stream":true`...)
	if b.May(streamOptions) {
		b.body = append(b.body, `,"stream_options":{"include_usage":true}`...)
	}
	if len(p.Tools) > 0 {
		b.body = append(append(b.body, `,"tools":`...), head.Tools...)
		if p.NoCalls && b.May(toolChoice) {
			b.body = append(b.body, `,"tool_choice":"none"`...)
		}
	}
	if f.maxTokens > 0 {
		b.body = strconv.AppendInt(append(b.body, `,"max_tokens":`...), f.maxTokens, 10)
	}
	b.settings(p)
	b.body = append(b.body, '}')
	return b.request
}

func encodeHead(p model.Prompt) wire.Encoded {
	b := []byte{'['}
	for i, t := range p.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		t = wire.Function(t)
		b = wire.AppendString(append(b, `{"type":"function","function":{"name":`...), t.Name)
		b = wire.AppendString(append(b, `,"description":`...), t.Description)
		b = append(append(append(b, `,"parameters":`...), t.Parameters...), `}}`...)
	}
	return wire.Encoded{Instructions: wire.AppendString(nil, p.Instructions), Tools: append(b, ']')}
}

func (b *builder) settings(p model.Prompt) {
	if p.Effort != "" && b.May(effort) {
		b.body = wire.AppendString(append(b.body, `,"reasoning_effort":`...), p.Effort)
	}
	if p.Verbosity != "" && b.May(verbosity) {
		b.body = wire.AppendString(append(b.body, `,"verbosity":`...), p.Verbosity)
	}
	if len(p.OutputSchema) > 0 {
		b.body = append(b.body, `,"response_format":{"type":"json_schema","json_schema":{"name":"output_schema","strict":true,"schema":`...)
		b.body = append(append(b.body, p.OutputSchema...), `}}`...)
	}
}

func (b *builder) unknownCalls(ids []string) {
	b.flush()
	for _, id := range ids {
		b.begin(id)
		b.body = wire.AppendString(append(b.body, `{"role":"tool","tool_call_id":`...), b.id(id))
		b.body = append(b.body, `,"content":"`+wirecheck.Aborted+`"}`...)
	}
}

// begin starts a message; id is the call that it answers.
func (b *builder) begin(id string) {
	if len(b.ids) > 0 {
		b.body = append(b.body, ',')
	}
	b.ids = append(b.ids, id)
}

// item adds one item of the prompt.
func (b *builder) item(it *protocol.PromptItem) {
	switch it.Kind {
	case protocol.PromptUser:
		b.closeMessage()
		b.flushImages()
		b.users = append(b.users, b.encoded(it))
	case protocol.PromptOutput:
		b.flushUsers()
		b.closeMessage()
		b.begin(it.WireID)
		b.contents = append(b.contents, len(b.body)+bytes.Index(b.encoded(it), contentMember)+len(contentMember))
		b.body = append(b.body, b.encoded(it)...)
		for _, c := range it.Content {
			if c.Type == protocol.ContentImage {
				b.images = append(b.images, c)
			}
		}
	default:
		b.flushImages()
		b.flushUsers()
		b.say(it)
	}
}

// say adds to the message of the model that is open, or opens one.
func (b *builder) say(it *protocol.PromptItem) {
	switch it.Kind {
	case protocol.PromptReasoning:
		// A response begins with its reasoning. Behind a call it belongs to the
		// same message, which must not be split from the outputs, and has no place there.
		if r := b.encoded(it); len(r) > 0 && len(b.calls) == 0 && b.May(reasoning) {
			b.closeMessage()
			b.reasoning = r
		}
	case protocol.PromptAssistant:
		b.texts = append(b.texts, b.encoded(it))
		b.open = true
	case protocol.PromptCall:
		b.calls = append(b.calls, b.encoded(it))
		b.open = true
	}
}

// flush writes what is not written yet.
func (b *builder) flush() {
	b.closeMessage()
	b.flushImages()
	b.flushUsers()
}

// flushUsers writes what the user said as one message: strict templates refuse two in
// a row.
func (b *builder) flushUsers() {
	if len(b.users) == 0 {
		return
	}
	b.begin("")
	b.body = append(b.body, `{"role":"user","content":`...)
	b.contents = append(b.contents, len(b.body))
	b.body = append(appendUsers(b.body, b.users), '}')
	b.users = nil
}

// appendUsers joins contents: texts to a text, anything else to a list of parts.
func appendUsers(b []byte, users [][]byte) []byte {
	plain := !slices.ContainsFunc(users, func(u []byte) bool { return u[0] != '"' })
	if plain {
		return appendTexts(b, users)
	}
	for i, u := range users {
		b = append(b, "[,"[min(i, 1)])
		if u[0] == '"' {
			b = append(append(append(b, `{"type":"text","text":`...), u...), '}')
			continue
		}
		b = append(b, u[1:len(u)-1]...)
	}
	return append(b, ']')
}

// closeMessage writes the open message of the model.
func (b *builder) closeMessage() {
	defer func() { b.reasoning, b.texts, b.calls, b.open = nil, nil, nil, false }()
	if !b.open {
		return
	}
	b.begin("")
	b.body = append(b.body, `{"role":"assistant",`...)
	if len(b.reasoning) == 0 && b.blank {
		b.reasoning = []byte(`"reasoning_content":" ",`)
	}
	b.body = append(b.body, b.reasoning...)
	b.body = append(b.body, `"content":`...)
	if len(b.texts) == 0 && b.May(nullContent) {
		b.body = append(b.body, `null`...)
	} else {
		b.body = appendTexts(b.body, b.texts)
	}
	for i, c := range b.calls {
		if i == 0 {
			b.body = append(b.body, `,"tool_calls":[`...)
		} else {
			b.body = append(b.body, ',')
		}
		b.body = append(b.body, c...)
	}
	if len(b.calls) > 0 {
		b.body = append(b.body, ']')
	}
	b.body = append(b.body, '}')
}

// appendTexts joins texts.
func appendTexts(b []byte, texts [][]byte) []byte {
	b = append(b, '"')
	for i, t := range texts {
		if i > 0 {
			b = append(b, `\n\n`...)
		}
		b = append(b, t[1:len(t)-1]...)
	}
	return append(b, '"')
}

// flushImages shows the images of outputs in a message behind them.
func (b *builder) flushImages() {
	if len(b.images) == 0 {
		return
	}
	if !b.May(outputImages) {
		b.images = nil
		return
	}
	b.users = append(b.users, encodeUser(append(protocol.Text("The images of the tool output above:"), b.images...)))
	b.images = nil
}

// encoded is an item, or the part of a message that it is.
func (b *builder) encoded(it *protocol.PromptItem) []byte {
	form := Wire
	if b.rename {
		form = Wire + " with short ids"
	}
	if m := it.Memo.Load(); m != nil && m.Wire == form {
		return m.JSON
	}
	text := encode(it, b.id(it.WireID))
	it.Memo.Store(&protocol.Memo{Wire: form, JSON: text})
	return text
}

// id is the id of a call as the server takes it.
func (b *builder) id(wireID string) string {
	if b.rename {
		return shortID(wireID)
	}
	return wireID
}

func encode(it *protocol.PromptItem, id string) []byte {
	var b []byte
	switch it.Kind {
	case protocol.PromptUser:
		b = encodeUser(it.Content)
	case protocol.PromptReasoning:
		b = encodeReasoning(it)
	case protocol.PromptAssistant:
		b = wire.AppendString(nil, it.Text)
	case protocol.PromptCall:
		b = encodeCall(it, id)
	case protocol.PromptOutput:
		b = wire.AppendString([]byte(`{"role":"tool","tool_call_id":`), id)
		b = append(wire.AppendString(append(b, `,"content":`...), it.Text), '}')
	}
	return b
}

// encodeUser is the content of a message of the user: a plain text if that is all it is, because
// many servers understand nothing else.
func encodeUser(content []protocol.Content) []byte {
	if !slices.ContainsFunc(content, func(c protocol.Content) bool { return c.Type == protocol.ContentImage }) {
		return wire.AppendString(nil, protocol.PlainText(content))
	}
	var b []byte
	for i, c := range content {
		b = append(b, "[,"[min(i, 1)])
		if c.Type == protocol.ContentImage {
			b = wire.AppendString(append(b, `{"type":"image_url","image_url":{"url":`...), wire.FitImage(c.ImageURL))
			b = append(b, `}}`...)
			continue
		}
		b = append(wire.AppendString(append(b, `{"type":"text","text":`...), c.Text), '}')
	}
	return append(b, ']')
}

// encodeReasoning is reasoning in the member in which the server sent it, with a
// comma behind it. Reasoning of another wire means nothing here.
func encodeReasoning(it *protocol.PromptItem) []byte {
	if it.Raw.Wire != Wire || !json.Valid(it.Raw.JSON) {
		return nil
	}
	var b []byte
	m := wire.Scan(it.Raw.JSON)
	for m.Next() {
		b = append(wire.AppendString(b, string(m.Key)), ':')
		b = append(append(b, m.Value...), ',')
	}
	return b
}

func encodeCall(it *protocol.PromptItem, id string) []byte {
	b := wire.AppendString([]byte(`{"id":`), id)
	b = wire.AppendString(append(b, `,"type":"function","function":{"name":`...), it.Name)
	b = wire.AppendString(append(b, `,"arguments":`...), wire.FunctionArguments(it))
	b = append(b, '}')
	if it.Raw.Wire == Wire && json.Valid(it.Raw.JSON) {
		b = append(append(b, `,"extra_content":`...), it.Raw.JSON...)
	}
	return append(b, '}')
}

var messageParam = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^messages\W*(\d+)`) })

// fault finds the call that a refusal means. Many servers only say which message
// it was, or not even that.
func (r request) fault(c wire.Complaint) *protocol.CallFault {
	if !aboutTools().MatchString(c.Message) {
		return nil
	}
	kind := protocol.OutputWithoutCall
	if m := messageParam().FindStringSubmatch(c.Param); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(r.ids) && r.ids[n] != "" {
			return &protocol.CallFault{WireID: r.ids[n], Fault: kind}
		}
	}
	f := wirecheck.Check(wirecheck.Prompt(r.items))
	if f == nil || f.Item.ID == "" || f.Item.Kind == wirecheck.Reasoning {
		return nil
	}
	switch f.Kind {
	case wirecheck.Missing, wirecheck.Late:
		kind = protocol.CallWithoutOutput
	case wirecheck.Twice:
		kind = protocol.OutputTwice
	}
	return &protocol.CallFault{WireID: f.Item.ID, Fault: kind}
}

// aboutTools fits the refusals that are about calls and their outputs.
var aboutTools = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)tool_calls?\b|role.{1,4}tool|tool (?:result|message|response)`)
})
