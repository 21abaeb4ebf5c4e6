package responses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// schemaName is what the wanted form of the last message is called.
const schemaName = "output_schema"

// The members that some services refuse.
var (
	reasoningMember = wire.Optional{Name: "reasoning.effort", Words: []string{"reasoning_effort", "'reasoning'", "reasoning is not supported"}}
	summaryMember   = wire.Optional{Name: "reasoning.summary", Words: []string{"reasoning_summary", "verified to generate reasoning summaries"}}
	encryptedMember = wire.Optional{Name: "include", Words: []string{"encrypted content is not supported", "reasoning.encrypted_content"}}
	verbosityMember = wire.Optional{Name: "verbosity", Words: []string{"text.verbosity"}}
	cacheKeyMember  = wire.Optional{Name: "prompt_cache_key"}
	parallelMember  = wire.Optional{Name: "parallel_tool_calls"}
	choiceMember    = wire.Optional{Name: "tool_choice"}
	storeMember     = wire.Optional{Name: "store"}
	customTools     = wire.Optional{Name: "custom tools", Words: []string{"'custom'", "`custom`", "\"custom\"", "\\\"custom\\\"", "custom tool", "grammar", "type custom"}}
)

// A builder writes the body of a request.
type builder struct {
	wire.Extras
	body []byte
}

// build makes the body of a request. What was encoded for an earlier request is
// copied.
func (f *format) build(p model.Prompt) *builder {
	b := &builder{Extras: f.Extras()}
	p.Tools = b.tools(p.Tools)
	head := f.Head.Get(p, encodeHead)
	items := make([][]byte, 0, len(p.Items)+len(p.UnknownCalls))
	size := len(head.Instructions) + len(head.Tools) + 1024 + len(p.OutputSchema)
	unknown := wire.UnknownCallsPlace(p)
	for i, it := range p.Items {
		if i == unknown {
			items = appendLone(items, p.UnknownCalls)
		}
		if b := encodedItem(it); b != nil {
			items = append(items, b)
			size += len(b) + 1
		}
	}
	if unknown == len(p.Items) {
		items = appendLone(items, p.UnknownCalls)
	}

	b.body = make([]byte, 0, size)
	b.body = append(b.body, `{"model":`...)
	b.body = wire.AppendString(b.body, p.Model)
	b.body = append(append(b.body, `,"instructions":`...), head.Instructions...)
	b.body = append(append(b.body, `,"tools":`...), head.Tools...)
	b.body = append(b.body, `,"input":[`...)
	for i, it := range items {
		if i > 0 {
			b.body = append(b.body, ',')
		}
		b.body = append(b.body, it...)
	}
	b.body = append(b.body, ']')
	if f.maxTokens > 0 {
		b.body = strconv.AppendInt(append(b.body, `,"max_output_tokens":`...), f.maxTokens, 10)
	}
	b.settings(p)
	return b
}

// tools are the tools as the service takes them: functions where it refuses others.
func (b *builder) tools(list []model.ToolSpec) []model.ToolSpec {
	custom := slices.ContainsFunc(list, func(t model.ToolSpec) bool { return t.Kind == protocol.CallCustom })
	if !custom || b.May(customTools) {
		return list
	}
	functions := slices.Clone(list)
	for i, t := range functions {
		if t.Kind == protocol.CallCustom {
			functions[i] = wire.Function(t)
			functions[i].Kind, functions[i].Grammar = protocol.CallFunction, ""
		}
	}
	return functions
}

func (b *builder) settings(p model.Prompt) {
	if b.May(choiceMember) {
		choice := "auto"
		if p.NoCalls {
			choice = "none"
		}
		b.body = append(b.body, `,"tool_choice":"`+choice+`"`...)
	}
	if b.May(parallelMember) {
		b.body = append(b.body, `,"parallel_tool_calls":true`...)
	}
	b.reasoning(p)
	if b.May(storeMember) {
		b.body = append(b.body, `,"store":false`...)
	}
	b.body = append(b.body, `,"stream":true,"include":[`...)
	if reasons(p) && b.May(encryptedMember) {
		b.body = append(b.body, `"reasoning.encrypted_content"`...)
	}
	b.body = append(b.body, ']')
	if p.CacheKey != "" && b.May(cacheKeyMember) {
		b.body = wire.AppendString(append(b.body, `,"prompt_cache_key":`...), p.CacheKey)
	}
	b.text(p)
	b.body = append(b.body, '}')
}

// reasoning adds how much the model shall think, and what it shall say of it.
func (b *builder) reasoning(p model.Prompt) {
	var members [][]byte
	if p.Effort != "" && b.May(reasoningMember) {
		members = append(members, wire.AppendString([]byte(`"effort":`), p.Effort))
	}
	if p.Summary != "" && b.May(summaryMember) {
		members = append(members, wire.AppendString([]byte(`"summary":`), p.Summary))
	}
	if len(members) > 0 {
		b.body = append(append(b.body, `,"reasoning":{`...), bytes.Join(members, []byte(","))...)
		b.body = append(b.body, '}')
	}
}

// text adds how long and in which form the model should write.
func (b *builder) text(p model.Prompt) {
	var members [][]byte
	if p.Verbosity != "" && b.May(verbosityMember) {
		members = append(members, wire.AppendString([]byte(`"verbosity":`), p.Verbosity))
	}
	if len(p.OutputSchema) > 0 {
		format := append([]byte(`"format":{"type":"json_schema","name":"`+schemaName+`","strict":true,"schema":`), p.OutputSchema...)
		members = append(members, append(format, '}'))
	}
	if len(members) > 0 {
		b.body = append(append(b.body, `,"text":{`...), bytes.Join(members, []byte(","))...)
		b.body = append(b.body, '}')
	}
}

// reasons reports whether encrypted reasoning can be asked for: the older
// families refuse that.
func reasons(p model.Prompt) bool {
	if p.Effort != "" || p.Summary != "" {
		return true
	}
	for _, family := range []string{"gpt-3", "gpt-4", "chatgpt-4"} {
		if strings.HasPrefix(p.Model, family) {
			return false
		}
	}
	return true
}

func encodeHead(p model.Prompt) wire.Encoded {
	b := []byte{'['}
	for i, t := range p.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTool(b, t)
	}
	return wire.Encoded{Instructions: wire.AppendString(nil, p.Instructions), Tools: append(b, ']')}
}

func appendTool(b []byte, t model.ToolSpec) []byte {
	kind := "function"
	switch t.Kind {
	case protocol.CallLocalShell:
		return append(b, `{"type":"local_shell"}`...)
	case protocol.CallCustom:
		kind = "custom"
	}
	b = append(b, `{"type":"`+kind+`","name":`...)
	b = wire.AppendString(b, t.Name)
	b = wire.AppendString(append(b, `,"description":`...), t.Description)
	switch {
	case t.Kind == protocol.CallCustom && t.Grammar != "":
		b = wire.AppendString(append(b, `,"format":{"type":"grammar","syntax":"lark","definition":`...), t.Grammar)
		b = append(b, '}')
	case t.Kind != protocol.CallCustom:
		b = append(b, `,"strict":`...)
		b = strconv.AppendBool(b, t.Strict)
		b = append(b, `,"parameters":`...)
		if len(t.Parameters) == 0 {
			b = append(b, `{"type":"object","properties":{}}`...)
		}
		b = append(b, t.Parameters...)
	}
	return append(b, '}')
}

func appendLone(items [][]byte, ids []string) [][]byte {
	for _, id := range ids {
		b := wire.AppendString([]byte(`{"type":"function_call_output","call_id":`), id)
		items = append(items, append(b, `,"output":"aborted"}`...))
	}
	return items
}

// encodedItem is an item as the service wants it, or nil if it wants none.
func encodedItem(it *protocol.PromptItem) []byte {
	if m := it.Memo.Load(); m != nil && m.Wire == Wire {
		return m.JSON
	}
	b := encodeItem(it)
	it.Memo.Store(&protocol.Memo{Wire: Wire, JSON: b})
	return b
}

func encodeItem(it *protocol.PromptItem) []byte {
	if it.Raw.Wire == Wire {
		if b := encodeRaw(it); b != nil {
			return b
		}
	}
	switch it.Kind {
	case protocol.PromptUser:
		return encodeUser(it.Content)
	case protocol.PromptAssistant:
		// What has no id of the service, such as a partial message, is a message in the form in which anybody writes one.
		return append(wire.AppendString([]byte(`{"type":"message","role":"assistant","content":`), it.Text), '}')
	case protocol.PromptCall:
		return encodeCall(it)
	case protocol.PromptOutput:
		return encodeOutput(it)
	}
	return nil // reasoning of another wire means nothing here
}

func encodeUser(content []protocol.Content) []byte {
	b := []byte(`{"type":"message","role":"user","content":[`)
	return append(appendContent(b, content), `]}`...)
}

func appendContent(b []byte, content []protocol.Content) []byte {
	for i, c := range content {
		if i > 0 {
			b = append(b, ',')
		}
		if c.Type == protocol.ContentImage {
			b = wire.AppendString(append(b, `{"type":"input_image","image_url":`...), wire.FitImage(c.ImageURL))
		} else {
			b = wire.AppendString(append(b, `{"type":"input_text","text":`...), c.Text)
		}
		b = append(b, '}')
	}
	return b
}

func encodeCall(it *protocol.PromptItem) []byte {
	kind, arguments := "function_call", "arguments"
	if it.CallKind == protocol.CallCustom {
		kind, arguments = "custom_tool_call", "input"
	}
	b := append([]byte(nil), `{"type":"`+kind+`","call_id":`...)
	b = wire.AppendString(b, it.WireID)
	b = wire.AppendString(append(b, `,"name":`...), it.Name)
	b = wire.AppendString(append(b, `,"`+arguments+`":`...), it.Arguments)
	return append(b, '}')
}

func encodeOutput(it *protocol.PromptItem) []byte {
	kind := "function_call_output"
	if it.CallKind == protocol.CallCustom {
		kind = "custom_tool_call_output"
	}
	b := append([]byte(nil), `{"type":"`+kind+`","call_id":`...)
	b = wire.AppendString(b, it.WireID)
	b = append(b, `,"output":`...)
	if len(it.Content) == 0 {
		return append(wire.AppendString(b, it.Text), '}')
	}
	b = append(b, '[')
	if it.Text != "" {
		b = appendContent(b, protocol.Text(it.Text))
		b = append(b, ',')
	}
	return append(appendContent(b, it.Content), `]}`...)
}

// sentBack are the members of an item that the service takes back. Others it only sends.
var sentBack = map[string][]string{
	"message":          {"type", "id", "role", "status", "content", "phase"},
	"reasoning":        {"type", "id", "summary", "content", "encrypted_content"},
	"function_call":    {"type", "id", "call_id", "name", "arguments", "namespace"},
	"custom_tool_call": {"type", "id", "call_id", "name", "input", "namespace"},
	"local_shell_call": {"type", "id", "call_id", "status", "action"},
}

// encodeRaw is an item as the service sent it, or nil if it cannot be sent back.
func encodeRaw(it *protocol.PromptItem) []byte {
	var head struct{ Type, ID, CallID string }
	m := wire.Scan(it.Raw.JSON)
	for m.Next() {
		switch string(m.Key) {
		case "type":
			head.Type, _ = wire.String(m.Value)
		case "id":
			head.ID, _ = wire.String(m.Value)
		case "call_id":
			head.CallID, _ = wire.String(m.Value)
		}
	}
	known := sentBack[head.Type]
	if m.Err() != nil || known == nil || !json.Valid(it.Raw.JSON) {
		return nil
	}
	if head.CallID == "" {
		head.CallID = head.ID
	}
	if it.Kind == protocol.PromptCall && head.CallID != it.WireID {
		return nil // a program renamed the call
	}

	if head.Type == "message" && head.ID == "" {
		return nil // the service wants the id of what it said
	}
	b := make([]byte, 0, len(it.Raw.JSON)+64)
	status := head.Type != "message"
	m = wire.Scan(it.Raw.JSON)
	for m.Next() {
		if !slices.Contains(known, string(m.Key)) || string(m.Value) == "null" {
			continue
		}
		b = append(b, ',')
		b = wire.AppendString(b, string(m.Key))
		b = append(b, ':')
		if head.Type == "message" && string(m.Key) == "content" {
			b = appendSaid(b, m.Value)
			continue
		}
		status = status || string(m.Key) == "status"
		b = append(b, m.Value...)
	}
	if !status {
		b = append(b, `,"status":"completed"`...)
	}
	b[0] = '{'
	return append(b, '}')
}

// appendSaid appends the content of a message as the service takes it back: a text has annotations, be it none.
func appendSaid(b, content []byte) []byte {
	list := wire.ScanArray(content)
	parts := 0
	start := len(b)
	b = append(b, '[')
	for list.Next() {
		if parts++; parts > 1 {
			b = append(b, ',')
		}
		text, noted := false, false
		m := wire.Scan(list.Value)
		for m.Next() {
			text = text || string(m.Key) == "type" && string(m.Value) == `"output_text"`
			noted = noted || string(m.Key) == "annotations"
		}
		if m.Err() != nil || !text || noted {
			b = append(b, list.Value...)
			continue
		}
		b = append(b, bytes.TrimRight(list.Value[:len(bytes.TrimRight(list.Value, " \t\r\n"))-1], " \t\r\n")...)
		b = append(b, `,"annotations":[]}`...)
	}
	if list.Err() != nil {
		return append(b[:start], content...)
	}
	return append(b, ']')
}
