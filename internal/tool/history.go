package tool

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool/args"
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

var searchSchema = &args.Schema{
	Tool: "search_history", Bare: "query", Example: `{"query":"error login.go"}`,
	Params: []args.Param{
		{Name: "query", Type: args.String, Required: true, Description: "Words that the place contains.", Aliases: []string{"pattern", "text", "words", "search"}},
	},
}

// Spec describes the tool.
func (t *SearchHistory) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "search_history", Kind: protocol.CallFunction,
		Description: searchSchema.Describe("Searches everything that was said, called and printed earlier in this conversation, also what a summary has replaced. " +
			"Finds the places that contain all words of the query, in upper or lower case, the latest first. read_history shows more of a place."),
		Parameters: searchSchema.JSON(), Strict: searchSchema.Strict(),
	}
}

// ReadOnly reports that searches may run side by side.
func (t *SearchHistory) ReadOnly() bool { return true }

// Run searches.
func (t *SearchHistory) Run(ctx context.Context, call Call) Result {
	a, wrong := call.parse(searchSchema)
	if wrong != nil {
		return *wrong
	}
	words := strings.Fields(strings.ToLower(a.String("query")))
	if len(words) == 0 {
		return failure(searchSchema.Error("query is empty"))
	}
	var found []string
	total := 0
	for place, err := range places(ctx, t.Events) {
		if err != nil {
			return failure("read the conversation: " + err.Error())
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

var readHistorySchema = &args.Schema{
	Tool: "read_history", Bare: "item", Example: `{"item":"3.1.0","offset":8000}`,
	Params: []args.Param{
		{Name: "item", Type: args.String, Required: true, Description: "Which item, such as 3.1.0.", Aliases: []string{"id", "item_id"}},
		{Name: "what", Type: args.String, Description: "Which part of the item: message, call or output. Default: its output.", Aliases: []string{"part"}},
		{Name: "offset", Type: args.Number, Description: "The byte to begin at. Default: 0."},
	},
}

// Spec describes the tool.
func (t *ReadHistory) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "read_history", Kind: protocol.CallFunction,
		Description: readHistorySchema.Describe(fmt.Sprintf("Reads one item of this conversation as it was, %d bytes at a time: a message, or what a call printed. "+
			"search_history names the items.", maxHistoryText)),
		Parameters: readHistorySchema.JSON(),
	}
}

// ReadOnly reports that reads may run side by side.
func (t *ReadHistory) ReadOnly() bool { return true }

// Run reads.
func (t *ReadHistory) Run(ctx context.Context, call Call) Result {
	a, wrong := call.parse(readHistorySchema)
	if wrong != nil {
		return *wrong
	}
	item, what, offset := a.String("item"), a.String("what"), int(a.Number("offset", 0))
	if item == "" {
		return failure(readHistorySchema.Error("item is empty"))
	}
	var found *place
	for pl, err := range places(ctx, t.Events) {
		if err != nil {
			return failure("read the conversation: " + err.Error())
		}
		if pl.item == item && (what == "" || pl.part == what) {
			found = &pl // the last is the output
		}
	}
	if found == nil {
		return failure(fmt.Sprintf("there is no item %q; search_history names the items", item))
	}
	text := found.text
	if offset < 0 || offset > len(text) {
		return failure(fmt.Sprintf("item %s has %d bytes, so that there is nothing at %d", item, len(text), offset))
	}
	from, to := offset, min(len(text), offset+maxHistoryText)
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
