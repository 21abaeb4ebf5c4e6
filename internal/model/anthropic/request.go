package anthropic

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// A block is one block of content, or several, without the last closing brace,
// so that members can be added.
type block struct {
	kind protocol.PromptKind
	head string // what depends on the request
	tail []byte // what does not
}

func (b block) role() string {
	if b.kind == protocol.PromptUser || b.kind == protocol.PromptOutput {
		return "user"
	}
	return "assistant"
}

// A builder writes the messages of a request.
type builder struct {
	body     []byte
	blocks   []block
	used     map[string]bool     // ids that calls have on this wire
	open     map[string][]string // by our id of a call: the ids on this wire that have no result yet
	last     map[string]string   // and the last that had one
	original map[string]string   // from the id on this wire to ours

	wire.Extras
}

// The members that some services refuse.
var (
	thinkingMember = wire.Optional{Name: "thinking", Words: []string{"budget_tokens", "adaptive"}}
	effortMember   = wire.Optional{Name: "effort", Words: []string{"output_config"}}
	choiceMember   = wire.Optional{Name: "tool_choice"}
	cacheMember    = wire.Optional{Name: "cache_control"}
)

// build makes the body of a request. What was encoded for an earlier one is
// copied.
func (f *format) build(p model.Prompt) *builder {
	head := f.Head.Get(p, encodeHead)
	b := &builder{used: map[string]bool{}, open: map[string][]string{}, last: map[string]string{}, original: map[string]string{}, Extras: f.Extras()}
	size := len(head.Instructions) + len(head.Tools) + len(p.OutputSchema) + 1024
	for _, it := range p.Items {
		b.item(it)
	}
	for _, bl := range b.blocks {
		size += len(bl.head) + len(bl.tail) + 100
	}

	b.body = make([]byte, 0, size)
	b.body = append(b.body, `{"model":`...)
	b.body = wire.AppendString(b.body, p.Model)
	most := f.outputLimit(p, size)
	b.body = strconv.AppendInt(append(b.body, `,"max_tokens":`...), int64(most), 10)
	b.body = append(b.body, head.Tools...)
	if p.NoCalls && len(p.Tools) > 0 && b.May(choiceMember) {
		b.body = append(b.body, `,"tool_choice":{"type":"none"}`...)
	}
	if b.May(cacheMember) {
		b.body = append(b.body, head.Instructions...)
	} else {
		b.body = append(b.body, strings.ReplaceAll(string(head.Instructions), cacheMark+`}]`, `}]`)...)
	}
	b.messages()
	b.body = append(b.body, `,"stream":true`...)
	b.thinking(p, most)
	b.body = append(b.body, '}')
	return b
}

// minOutput is what a model is left to write even where its window seems full.
const minOutput = 4096

// bytesPerToken is how many bytes a token has at least, on average.
const bytesPerToken = 3

// outputLimit is how much the model may write. The service wants that to fit into the
// window together with a request of the given size.
func (f *format) outputLimit(p model.Prompt, size int) int {
	most := int(min(f.maxTokens, math.MaxInt32))
	if most <= 0 && f.knownLimit != nil {
		most = int(min(f.knownLimit(p.Model), math.MaxInt32))
	}
	if most <= 0 {
		most = mostTokens(p.Model)
	}
	if p.Window > 0 {
		most = min(most, max(minOutput, int(p.Window)-size/bytesPerToken))
		most = min(most, max(1024, int(p.Window)/4))
	}
	return most
}

// mostTokens is how much a model can write in one response, or a safe part of it.
func mostTokens(name string) int {
	for _, m := range []struct {
		part string
		max  int
	}{{"claude-3-7", 32000}, {"claude-3-5", 8192}, {"claude-3", 4096}} {
		if strings.Contains(name, m.part) {
			return m.max
		}
	}
	return 32000
}

// budgets are how many tokens an effort is worth, for models that want a number.
var budgets = map[string]int{"low": 4096, "medium": 10240, "high": 20480, "xhigh": 28672}

var generation = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?:\D|$)`) })

// adaptive reports whether a model decides by itself how much to think. From
// Claude 4.6 on they do, and later ones reject the parameter.
func adaptive(name string) bool {
	m := generation().FindStringSubmatch(name)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > 4 && major < 100 || major == 4 && minor >= 6
}

// thinking adds how much the model shall think, and in which form it shall answer.
func (b *builder) thinking(p model.Prompt, most int) {
	budget := budgets[p.Effort]
	var config []byte
	switch {
	case budget == 0 || !b.mayThink():
	case adaptive(p.Model):
		if b.May(thinkingMember) {
			b.body = append(b.body, `,"thinking":{"type":"adaptive"}`...)
		}
		if b.May(effortMember) {
			config = wire.AppendString([]byte(`"effort":`), p.Effort)
		}
	case budget < most && b.May(thinkingMember):
		b.body = strconv.AppendInt(append(b.body, `,"thinking":{"type":"enabled","budget_tokens":`...), int64(budget), 10)
		b.body = append(b.body, '}')
	}
	if len(p.OutputSchema) > 0 {
		if config != nil {
			config = append(config, ',')
		}
		config = append(config, `"format":{"type":"json_schema","schema":`...)
		config = append(append(config, p.OutputSchema...), '}')
	}
	if config != nil {
		b.body = append(append(append(b.body, `,"output_config":{`...), config...), '}')
	}
}

// encodeHead encodes the system prompt and the tools. The mark behind the former
// lets the service keep both.
func encodeHead(p model.Prompt) wire.Encoded {
	var e wire.Encoded
	if p.Instructions != "" {
		e.Instructions = wire.AppendString([]byte(`,"system":[{"type":"text","text":`), p.Instructions)
		e.Instructions = append(e.Instructions, cacheMark+`}]`...)
	}
	for i, t := range p.Tools {
		if i == 0 {
			e.Tools = append(e.Tools, `,"tools":[`...)
		} else {
			e.Tools = append(e.Tools, ',')
		}
		t = wire.Function(t)
		e.Tools = wire.AppendString(append(e.Tools, `{"name":`...), t.Name)
		e.Tools = wire.AppendString(append(e.Tools, `,"description":`...), t.Description)
		e.Tools = append(append(append(e.Tools, `,"input_schema":`...), t.Parameters...), '}')
	}
	if len(p.Tools) > 0 {
		e.Tools = append(e.Tools, ']')
	}
	return e
}

// messages writes the blocks, those of one role together.
func (b *builder) messages() {
	b.body = append(b.body, `,"messages":[`...)
	marked := b.marked()
	role := ""
	if len(b.blocks) > 0 && b.blocks[0].role() == "assistant" {
		b.body = append(b.body, `{"role":"user","content":[{"type":"text","text":"(continued)"}]},`...)
	}
	for i, bl := range b.blocks {
		switch {
		case bl.role() == role:
			b.body = append(b.body, ',')
		case role != "":
			b.body = append(b.body, `]},`...)
			fallthrough
		default:
			role = bl.role()
			b.body = append(b.body, `{"role":"`+role+`","content":[`...)
		}
		b.body = append(append(b.body, bl.head...), bl.tail...)
		if marked[i] {
			b.body = append(b.body, cacheMark...)
		}
		b.body = append(b.body, '}')
	}
	if role != "" {
		b.body = append(b.body, `]}`...)
	}
	b.body = append(b.body, ']')
}

// marked are the blocks behind which the service shall keep what it has read:
// the ends of the last two messages of the user. The next request finds the later one.
func (b *builder) marked() map[int]bool {
	marks := map[int]bool{}
	if b.Refused(cacheMember) {
		return marks
	}
	after := ""
	for i := len(b.blocks) - 1; i >= 0 && len(marks) < 2; i-- {
		role := b.blocks[i].role()
		if role == "user" && after != "user" {
			marks[i] = true
		}
		after = role
	}
	return marks
}

// mayThink reports whether thinking can be asked for: in the midst of calls only
// if the response that made them began with thinking.
func (b *builder) mayThink() bool {
	n := len(b.blocks)
	for n > 0 && b.blocks[n-1].kind == protocol.PromptOutput {
		n--
	}
	if n == len(b.blocks) || n == 0 || b.blocks[n-1].role() == "user" {
		return true
	}
	for n > 0 && b.blocks[n-1].role() == "assistant" {
		n--
	}
	return b.blocks[n].kind == protocol.PromptReasoning
}

// item adds the blocks of one item of the prompt.
func (b *builder) item(it *protocol.PromptItem) {
	bl := block{kind: it.Kind, tail: encoded(it)}
	switch it.Kind {
	case protocol.PromptCall:
		name := b.name(it.WireID)
		b.open[it.WireID] = append(b.open[it.WireID], name)
		bl.head = `{"type":"tool_use","id":"` + name + `"`
	case protocol.PromptOutput:
		bl.head = `{"type":"tool_result","tool_use_id":"` + b.answer(it.WireID) + `"`
		if it.Failed {
			bl.head += `,"is_error":true`
		}
	}
	if len(bl.tail) > 0 {
		b.blocks = append(b.blocks, bl)
	}
}

// name gives a call an id that the service accepts and that no other call has.
func (b *builder) name(id string) string {
	clean := []byte(id)
	for i, c := range clean {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			clean[i] = '_'
		}
	}
	name := string(clean)
	for n := 2; name == "" || b.used[name]; n++ {
		name = string(clean) + "_" + strconv.Itoa(n)
	}
	b.used[name] = true
	b.original[name] = id
	return name
}

// answer is the name of the call that an output with our id answers: the nearest
// that has none.
func (b *builder) answer(id string) string {
	if open := b.open[id]; len(open) > 0 {
		b.last[id] = open[len(open)-1]
		b.open[id] = open[:len(open)-1]
	}
	if b.last[id] == "" {
		b.last[id] = b.name(id)
	}
	return b.last[id]
}

// encoded is an item, or the part of a block that does not depend on what stands
// around it.
func encoded(it *protocol.PromptItem) []byte {
	if m := it.Memo.Load(); m != nil && m.Wire == Wire {
		return m.JSON
	}
	var b []byte
	switch it.Kind {
	case protocol.PromptUser:
		b = encodeUser(it.Content)
	case protocol.PromptAssistant:
		if strings.TrimSpace(it.Text) != "" { // the service refuses empty texts
			b = wire.AppendString([]byte(`{"type":"text","text":`), it.Text)
		}
	case protocol.PromptReasoning:
		b = encodeReasoning(it.Raw)
	case protocol.PromptCall:
		b = wire.AppendString([]byte(`,"name":`), it.Name)
		b = append(append(b, `,"input":`...), wire.FunctionArguments(it)...)
	case protocol.PromptOutput:
		b = encodeOutput(it)
	}
	it.Memo.Store(&protocol.Memo{Wire: Wire, JSON: b})
	return b
}

// encodeReasoning is thinking as the service sent it. That of another wire
// means nothing here.
func encodeReasoning(raw protocol.Raw) []byte {
	text := bytes.TrimSpace(raw.JSON)
	if raw.Wire != Wire || !json.Valid(text) || text[0] != '{' {
		return nil
	}
	return text[: len(text)-1 : len(text)-1]
}

// encodeUser is what a user says. There must be something.
func encodeUser(content []protocol.Content) []byte {
	b := appendContent(nil, content)
	if len(b) == 0 {
		b = []byte(`{"type":"text","text":"(empty)"`)
	}
	return b
}

// appendContent adds texts and images, all but the closing brace of the last.
func appendContent(b []byte, content []protocol.Content) []byte {
	for _, c := range content {
		if c.Type != protocol.ContentImage && strings.TrimSpace(c.Text) == "" {
			continue
		}
		if len(b) > 0 {
			b = append(b, `},`...)
		}
		if c.Type == protocol.ContentImage {
			b = appendImage(b, c.ImageURL)
			continue
		}
		b = wire.AppendString(append(b, `{"type":"text","text":`...), c.Text)
	}
	return b
}

// appendImage adds an image from a data URL or an address.
func appendImage(b []byte, url string) []byte {
	url = wire.FitImage(url)
	rest, ok := strings.CutPrefix(url, "data:")
	kind, data, found := strings.Cut(rest, ";base64,")
	if !ok || !found {
		b = wire.AppendString(append(b, `{"type":"image","source":{"type":"url","url":`...), url)
		return append(b, '}')
	}
	b = wire.AppendString(append(b, `{"type":"image","source":{"type":"base64","media_type":`...), kind)
	b = wire.AppendString(append(b, `,"data":`...), data)
	return append(b, '}')
}

func encodeOutput(it *protocol.PromptItem) []byte {
	b := []byte(`,"content":`)
	if len(it.Content) == 0 {
		return wire.AppendString(b, it.Text)
	}
	parts := append(protocol.Text(it.Text), it.Content...)
	b = append(append(b, '['), appendContent(nil, parts)...)
	return append(b, `}]`...)
}
