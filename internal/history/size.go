package history

import (
	"fmt"
	"slices"
	"unicode/utf8"

	p "github.com/fermata-agent/fermata/protocol"
)

// bytesPerToken is how many bytes a token has, on average, where a service does not
// say how many tokens there are.
const bytesPerToken = 4

// imageSize is what an image counts for. Its price does not depend on its bytes.
const imageSize = 1500 * bytesPerToken

// Tokens estimates how many tokens some bytes are.
func Tokens(bytes int64) int64 { return (bytes + bytesPerToken - 1) / bytesPerToken }

// Size is how many bytes the model is sent, instructions and tools not counted.
func (h *History) Size() int64 {
	n := h.size
	for _, out := range h.group.outputs {
		n += int64(len(out.Output)) + contentSize(out.Content)
	}
	for _, r := range h.group.reasoning {
		n += int64(len(r.Raw.JSON))
	}
	return n
}

// Grown is how many bytes were added since the last compaction.
func (h *History) Grown() int64 { return h.Size() - h.base }

// MessageSize is how many bytes a message counts for when it has entered the history.
func (h *History) MessageSize(content []p.Content) int64 {
	n := contentSize(content)
	if h.window > 0 {
		n = min(n, h.window*bytesPerToken/messageShare)
	}
	return n
}

func contentSize(content []p.Content) int64 {
	var n int64
	for _, c := range content {
		if c.Type == p.ContentImage {
			n += imageSize
			continue
		}
		n += int64(len(c.Text))
	}
	return n
}

// perItem is what the form of an item costs on the wire.
const perItem = 48

func itemSize(it *p.PromptItem) int64 {
	n := int64(perItem+len(it.Text)+len(it.Name)+len(it.Arguments)) + contentSize(it.Content)
	if it.Kind == p.PromptReasoning {
		n += int64(len(it.Raw.JSON))
	}
	return n
}

func smaller(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// A message or an output that alone would fill the window is shortened where it enters
// the history, so that the requests that follow begin alike. All of it is in the journal.
const (
	messageShare = 2 // a message may take half of the window
	outputShare  = 4 // an output a quarter
)

func (h *History) fitMessage(b *p.UserMessage) []p.Content {
	most := h.window * bytesPerToken / messageShare
	if h.window == 0 || contentSize(b.Content) <= most {
		return b.Content
	}
	h.shortened = true
	return shortenContent(b.Content, int(most), b.Item)
}

func (h *History) fitOutput(call p.CallID, text string) string {
	most := h.window * bytesPerToken / outputShare
	if h.window == 0 || int64(len(text)) <= most {
		return text
	}
	h.shortened = true
	return shortenText(text, int(most), call.String())
}

// shortenContent shortens the texts of a message to about most bytes together; images
// stay as long as there is room.
func shortenContent(content []p.Content, most int, id p.ItemID) []p.Content {
	short := slices.Clone(content)
	left := most
	for i, c := range short {
		if c.Type == p.ContentImage {
			if left < imageSize {
				short[i] = p.Content{Type: p.ContentText, Text: "[an image was left out]"}
			}
			left -= imageSize
			continue
		}
		short[i].Text = shortenText(c.Text, max(left, 200), id.String())
		left -= len(short[i].Text)
	}
	return short
}

// shortenText keeps the beginning and the end of a text. If it has a name, the place
// between says how to read the rest.
func shortenText(text string, most int, name string) string {
	if len(text) <= most || most <= 0 && text == "" {
		return text
	}
	most = max(most, 16)
	head, tail := most*2/3, most-most*2/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	from := len(text) - tail
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	hint := ""
	if name != "" {
		hint = fmt.Sprintf("; read_history with item %q and offset %d shows them", name, head)
	}
	return text[:head] + fmt.Sprintf("\n[… %d bytes are left out here%s …]\n", from-head, hint) + text[from:]
}

// Fit returns the items shortened to about limit tokens: the reasoning is left out,
// then the oldest outputs are shortened, then calls are left out with their outputs, then
// what the model said. What the user said stays, and is only shortened if all else is not enough.
func Fit(items []*p.PromptItem, limit int64) []*p.PromptItem {
	f := &fitter{items: slices.Clone(items), left: limit * bytesPerToken}
	for _, it := range items {
		f.left -= itemSize(it)
	}
	f.dropReasoning()
	for _, most := range []int{4000, 600} {
		f.shortenOutputs(most)
	}
	f.dropCalls(lastCall(items))
	f.shortenTexts(p.PromptAssistant, 400)
	f.shortenTexts(p.PromptUser, 4000)
	f.shortenTexts(p.PromptUser, 600)
	f.dropCalls(p.CallID{})
	return f.items
}

// lastCall is the latest call.
func lastCall(items []*p.PromptItem) p.CallID {
	for _, it := range slices.Backward(items) {
		if it.Kind == p.PromptCall {
			return it.Call
		}
	}
	return p.CallID{}
}

// A fitter makes a list of items smaller until it fits.
type fitter struct {
	items []*p.PromptItem
	left  int64 // bytes; less than 0 as long as it does not fit
}

func (f *fitter) dropReasoning() {
	if f.left >= 0 {
		return
	}
	f.items = slices.DeleteFunc(f.items, func(it *p.PromptItem) bool {
		if it.Kind != p.PromptReasoning {
			return false
		}
		f.left += itemSize(it)
		return true
	})
}

// replace puts a smaller item in the place of one.
func (f *fitter) replace(i int, by *p.PromptItem) {
	f.left += itemSize(f.items[i]) - itemSize(by)
	f.items[i] = by
}

func (f *fitter) shortenOutputs(most int) {
	for i, it := range f.items {
		if f.left >= 0 {
			return
		}
		if it.Kind != p.PromptOutput || itemSize(it) <= int64(most+perItem+len(it.Name)) {
			continue
		}
		short := &p.PromptItem{Kind: it.Kind, Call: it.Call, WireID: it.WireID, CallKind: it.CallKind, Text: shortenText(it.Text, most, it.Call.String())}
		f.replace(i, short)
	}
}

// dropCalls leaves out calls with their outputs, the oldest first. Calls of one
// response go together; that of the given call stays.
func (f *fitter) dropCalls(but p.CallID) {
	for f.left < 0 {
		first := slices.IndexFunc(f.items, func(it *p.PromptItem) bool { return it.Kind == p.PromptCall })
		if first < 0 || f.items[first].Call.Turn == but.Turn && f.items[first].Call.Response == but.Response {
			return
		}
		turn, response := f.items[first].Call.Turn, f.items[first].Call.Response
		f.items = slices.DeleteFunc(f.items, func(it *p.PromptItem) bool {
			of := it.Kind == p.PromptCall || it.Kind == p.PromptOutput
			if !of || it.Call.Turn != turn || it.Call.Response != response {
				return false
			}
			f.left += itemSize(it)
			return true
		})
	}
}

func (f *fitter) shortenTexts(kind p.PromptKind, most int) {
	for i, it := range f.items {
		if f.left >= 0 {
			return
		}
		if it.Kind != kind || itemSize(it) <= int64(most)+perItem {
			continue
		}
		short := &p.PromptItem{Kind: kind, Text: shortenText(it.Text, most, "")}
		if kind == p.PromptUser {
			short.Content = p.Text(shortenText(p.PlainText(it.Content), most, ""))
			short.Text = ""
		}
		if itemSize(short) < itemSize(it) {
			f.replace(i, short)
		}
	}
}
