package protocol

import (
	"encoding/json"
	"slices"
	"sync/atomic"
)

// Content is a part of a message.
type Content struct {
	Type     ContentType `json:"type"`
	Text     string      `json:"text,omitempty"`
	ImageURL string      `json:"image_url,omitempty"` // a data URL or an address

	// Attached names what was put into a message because the person named it, such as @server:uri. It is
	// empty for what they wrote themselves.
	Attached string `json:"attached,omitempty"`
}

// A ContentType says what a Content holds.
type ContentType string

// The content types.
const (
	ContentText  ContentType = "text"
	ContentImage ContentType = "image"
)

// Text returns content that is only a text.
func Text(s string) []Content { return []Content{{Type: ContentText, Text: s}} }

// Written is PlainText without what is attached: what the person wrote.
func Written(content []Content) string {
	return PlainText(slices.DeleteFunc(slices.Clone(content), func(c Content) bool { return c.Attached != "" }))
}

// PlainText joins the text parts of content by line feeds.
func PlainText(content []Content) string {
	var out string
	for _, c := range content {
		if c.Type != ContentText {
			continue
		}
		if out != "" {
			out += "\n"
		}
		out += c.Text
	}
	return out
}

// A CallKind is the wire form of a call, which its output must match.
type CallKind string

// The kinds of call.
const (
	CallFunction   CallKind = "function"
	CallCustom     CallKind = "custom"
	CallLocalShell CallKind = "local_shell"
)

// Raw is an item as a model sent it, kept so that it can be sent back
// unchanged (ids, signatures, encrypted reasoning). It only means something to
// the wire it came from.
type Raw struct {
	Wire string          `json:"wire,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
}

// A PromptKind says what a PromptItem is.
type PromptKind string

// The kinds of prompt item.
const (
	PromptUser      PromptKind = "user"
	PromptAssistant PromptKind = "assistant"
	PromptReasoning PromptKind = "reasoning"
	PromptCall      PromptKind = "call"
	PromptOutput    PromptKind = "output"
)

// A PromptItem is one piece of what a model is sent. It is immutable once
// built, and shared by every later prompt that holds it.
type PromptItem struct {
	Kind      PromptKind
	Content   []Content // user; output with images
	Text      string    // assistant, reasoning summary, output
	Call      CallID    // call, output
	WireID    string    // call, output: the model's own call id
	CallKind  CallKind  // call, output
	Failed    bool      // output: the call did not do what was asked
	Name      string    // call
	Arguments string    // call: JSON for functions, free text for custom
	Raw       Raw       // as it came, if it came from a model

	// Memo is for the adapter that encodes this item, so that a prompt costs a
	// copy and not a re-encoding.
	Memo atomic.Pointer[Memo]
}

// A Memo is an encoded prompt item.
type Memo struct {
	Wire string
	JSON []byte
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"`
	Cached     int64 `json:"cached,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	Total      int64 `json:"total"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Input + v.Input, u.Cached + v.Cached, u.CacheWrite + v.CacheWrite,
		u.Output + v.Output, u.Reasoning + v.Reasoning, u.Total + v.Total,
	}
}

// Sub returns what u has more than v.
func (u Usage) Sub(v Usage) Usage {
	return Usage{
		u.Input - v.Input, u.Cached - v.Cached, u.CacheWrite - v.CacheWrite,
		u.Output - v.Output, u.Reasoning - v.Reasoning, u.Total - v.Total,
	}
}
