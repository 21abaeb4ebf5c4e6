// Package model is the way to a language model: [Client] is one provider's
// service, a [Prompt] is what it is sent, and a [Sink] takes what it says. Each
// wire has an adapter in a package of its own below this one.
//
// A Client has no memory and keeps no goroutine: Stream returns when the
// response is over, or at once when its context ends, with the connection closed.
// Errors are *protocol.Error values that say what kind of failure it was and
// whether to try again; a cancelled Stream returns the context's cause.
package model

import (
	"context"
	"encoding/json"

	"github.com/fermata-agent/fermata/protocol"
)

// A Client talks to one model service. It may be used from any goroutine.
type Client interface {
	// Stream sends the prompt and passes what comes back to sink, until the
	// wire's own mark of the end. Nothing is passed to sink after it returns.
	Stream(ctx context.Context, p Prompt, sink Sink) (End, error)
}

// A Sink takes a response as it arrives. Items are numbered in the order in
// which they began: 0, 1, 2 … Its methods are called from one goroutine.
type Sink interface {
	// Delta is a piece of a message or of reasoning that is not finished.
	Delta(index int, kind protocol.DeltaKind, text string)

	// Done is a finished item: an AssistantMessage, a Reasoning or a ToolCall,
	// whose ids the receiver fills in. A call is only passed when its arguments arrived whole.
	Done(index int, item protocol.Body)
}

// A Prompt is everything a request says.
type Prompt struct {
	Model        string
	Instructions string
	Items        []*protocol.PromptItem
	Tools        []ToolSpec
	Effort       string
	Summary      string
	Verbosity    string
	CacheKey     string          // the same for all requests of a conversation
	NoCalls      bool            // the model shall write a message and call no tool
	Window       int64           // how many tokens the model takes, 0 if not known
	OutputSchema json.RawMessage // wanted form of the last message
	UnknownCalls []string        // call ids that the service wants an output for and we do not know
}

// A ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema, for functions
	Strict      bool            // the service may hold the model to Parameters
	Kind        protocol.CallKind
	Grammar     string // lark, for custom tools
}

// End is what is known when a response is over.
type End struct {
	ID    string          // the service's name for the response
	Usage *protocol.Usage // nil if it did not say
}
