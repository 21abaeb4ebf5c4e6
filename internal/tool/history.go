package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// Events gives the events of the conversation that are recorded, in order.
type Events func(context.Context) iter.Seq2[protocol.Event, error]

// How much the tools of this file return.
const (
	maxMatches     = 20
	maxHistoryText = 8000 // bytes
	matchAround    = 160  // bytes shown on each side of a match
)

// SearchHistory finds what was said, called and printed earlier in the conversation,
// also what the model is no longer sent.
type SearchHistory struct{ Events Events }

// Spec describes the tool.
func (t *SearchHistory) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "search_history", Kind: protocol.CallFunction,
		Description: "Search everything that was said, called and printed earlier in this conversation, also what was summarised away. " +
			"Finds the places that contain all words of the query, in any case, the latest first. read_history shows more of a place.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words that the place contains"}},"required":["query"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that searches may run side by side.
func (t *SearchHistory) ReadOnly() bool { return true }

// Run searches.
func (t *SearchHistory) Run(ctx context.Context, call Call) Result {
	var a struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil || strings.TrimSpace(a.Query) == "" {
		return failed(`search_history needs a query, for example {"query":"error login.go"}`)
	}
	words := strings.Fields(strings.ToLower(a.Query))
	var found []string
	total := 0
	for place, err := range places(ctx, t.Events) {
		if err != nil {
			return failed("read the conversation: " + err.Error())
		}
		if at := firstMatch(place.text, words); at >= 0 {
			total++
			found = append(found, fmt.Sprintf("%s %s: %s", place.item, place.what, around(place.text, at)))
		}
	}
	if total == 0 {
		return Result{Output: protocol.ToolOutput{Output: "no place contains all of these words; try fewer or other words"}}
	}
	var b strings.Builder
	for i := len(found) - 1; i >= 0 && len(found)-i <= maxMatches && b.Len()+len(found[i]) < maxHistoryText; i-- {
		b.WriteString(found[i] + "\n")
	}
	fmt.Fprintf(&b, "%d places in all", total)
	return Result{Output: protocol.ToolOutput{Output: b.String()}}
}

// firstMatch is where a text has the first of the words, -1 if it lacks one.
func firstMatch(text string, words []string) int {
	low := strings.ToLower(text)
	first := -1
	for _, w := range words {
		at := strings.Index(low, w)
		if at < 0 {
			return -1
		}
		if first < 0 || at < first {
			first = at
		}
	}
	return min(first, len(text))
}

// around is the text on both sides of a place, on one line.
func around(text string, at int) string {
	from, to := max(0, at-matchAround), min(len(text), at+matchAround)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	s := strings.Join(strings.Fields(text[from:to]), " ")
	if from > 0 {
		s = "…" + s
	}
	if to < len(text) {
		s += "…"
	}
	return s
}

// ReadHistory shows an item of the conversation in pieces.
type ReadHistory struct{ Events Events }

// Spec describes the tool.
func (t *ReadHistory) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "read_history", Kind: protocol.CallFunction,
		Description: fmt.Sprintf("Read one item of this conversation as it was, %d bytes at a time: a message, or what a call printed. "+
			"search_history names the items.", maxHistoryText),
		Parameters: json.RawMessage(`{"type":"object","properties":{"item":{"type":"string","description":"such as 3.1.0"},` +
			`"what":{"type":"string","enum":["message","call","output"],"description":"which part of the item; its output unless given"},` +
			`"offset":{"type":"integer","description":"the byte to begin at"}},"required":["item"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that reads may run side by side.
func (t *ReadHistory) ReadOnly() bool { return true }

// Run reads.
func (t *ReadHistory) Run(ctx context.Context, call Call) Result {
	var a struct {
		Item   string `json:"item"`
		What   string `json:"what"`
		Offset int    `json:"offset"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil || a.Item == "" {
		return failed(`read_history needs an item, for example {"item":"3.1.0","offset":8000}`)
	}
	var found *place
	for pl, err := range places(ctx, t.Events) {
		if err != nil {
			return failed("read the conversation: " + err.Error())
		}
		if pl.item == a.Item && (a.What == "" || pl.part == a.What) {
			found = &pl // the last is the output
		}
	}
	if found == nil {
		return failed(fmt.Sprintf("there is no item %q; search_history names the items", a.Item))
	}
	text := found.text
	if a.Offset < 0 || a.Offset > len(text) {
		return failed(fmt.Sprintf("item %s has %d bytes, so that there is nothing at %d", a.Item, len(text), a.Offset))
	}
	from, to := a.Offset, min(len(text), a.Offset+maxHistoryText)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	head := fmt.Sprintf("%s %s, bytes %d to %d of %d", found.item, found.what, from, to, len(text))
	if to < len(text) {
		head += fmt.Sprintf("; continue at offset %d", to)
	}
	return Result{Output: protocol.ToolOutput{Output: head + "\n" + text[from:to]}}
}

// A place is something in a conversation that can be found and read.
type place struct {
	item string
	part string // message, call or output
	what string // for the model
	text string
}

// places gives what was said, called and printed, but not what these tools themselves returned.
func places(ctx context.Context, events Events) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		names := map[protocol.CallID]string{}
		for e, err := range events(ctx) {
			if err != nil {
				yield(place{}, err)
				return
			}
			pl, ok := placeOf(e, names)
			if ok && !yield(pl, nil) {
				return
			}
		}
	}
}

func placeOf(e protocol.Event, names map[protocol.CallID]string) (place, bool) {
	switch b := e.Body.(type) {
	case *protocol.UserMessage:
		return place{b.Item.String(), "message", "message of the user", protocol.PlainText(b.Content)}, true
	case *protocol.AssistantMessage:
		return place{b.Item.String(), "message", "your message", b.Text}, true
	case *protocol.ToolCall:
		names[b.Call] = b.Name
		return place{b.Call.String(), "call", "call of " + b.Name, b.Arguments}, !ownName(b.Name)
	case *protocol.ToolOutput:
		text := b.Output
		if b.Command != nil && len(b.Command.Output) > len(text) {
			text = b.Command.Output
		}
		return place{b.Call.String(), "output", "output of " + names[b.Call], text}, !ownName(names[b.Call])
	}
	return place{}, false
}

func ownName(name string) bool { return name == "search_history" || name == "read_history" }
