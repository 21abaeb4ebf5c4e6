package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Model answers the requests of turns. It may be used from any goroutine. The packages below provider are models of
// services; enginetest.TestModel checks one of a program's own.
type Model interface {
	// Stream answers one request: it passes what the model says to reply, and
	// returns when the response is over. When ctx ends it returns at once. What was
	// passed on until then is kept, marked as partial.
	//
	// An error fails the turn. A *protocol.Error says more: one with Retry set has
	// the request made again after a wait, for a few times.
	Stream(ctx context.Context, r Request, reply *Reply) error
}

// A ModelFunc is a Model that is a function.
type ModelFunc func(ctx context.Context, r Request, reply *Reply) error

// Stream calls f.
func (f ModelFunc) Stream(ctx context.Context, r Request, reply *Reply) error {
	return f(ctx, r, reply)
}

// A Request is everything that a model is sent. It must not be changed.
type Request struct {
	Conversation p.ConversationID // the same for all requests of a conversation, to be used as a cache key
	Model        string           // as the settings name it
	Instructions string           // what the model gets first
	Items        []*p.PromptItem  // the conversation so far, the newest message last
	Tools        []ToolSpec       // what the model may call
	NoCalls      bool             // the model is to write a message and call no tool, although Tools are sent
	Effort       string           // how much it should reason, as in protocol.Settings
	Summary      string           // of its reasoning, likewise
	Verbosity    string           // of its messages, likewise
	Window       int64            // how many tokens it accepts, 0 if that is not known
	OutputSchema json.RawMessage  // wanted form of the last message; nil if it may be any

	// UnknownCalls are ids of calls that the service wants an output for, and that the conversation does not have.
	UnknownCalls []string
}

// LastMessage is the text of the newest message of the user, or of the engine on
// the user's behalf.
func (r Request) LastMessage() string {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if r.Items[i].Kind == p.PromptUser {
			return p.PlainText(r.Items[i].Content)
		}
	}
	return ""
}

// A Reply takes what a model says, as it arrives. It is used by one goroutine, and
// not after Stream has returned.
type Reply struct {
	sink  model.Sink
	usage *p.Usage
	id    string
	index int         // of the item that is open, or else of the next one
	open  p.DeltaKind // what the open item is; "" if none is
	text  strings.Builder
}

// Text adds to a message of the model. Followers are shown it at once. The message
// ends with the next Reasoning or Call, or with the response.
func (r *Reply) Text(text string) { r.add(p.DeltaMessage, text) }

// Reasoning adds to a summary of the model's reasoning, as Text does to a message.
func (r *Reply) Reasoning(text string) { r.add(p.DeltaReasoning, text) }

// Call asks for a tool. The id is the model's own name for the call and differs
// from those of all other calls in the conversation; the arguments are JSON. The call
// is run when the response is over, and its output is part of the next request.
func (r *Reply) Call(id, name, arguments string) {
	r.finish()
	r.sink.Done(r.index, &p.ToolCall{WireID: id, Kind: p.CallFunction, Name: name, Arguments: arguments})
	r.index++
}

// Usage says how many tokens the request and the response took.
func (r *Reply) Usage(u p.Usage) { r.usage = &u }

// ID is the service's name for the response, for reports of problems.
func (r *Reply) ID(id string) { r.id = id }

func (r *Reply) add(kind p.DeltaKind, text string) {
	if text == "" {
		return
	}
	if r.open != kind {
		r.finish()
		r.open = kind
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	r.text.WriteString(text)
	r.sink.Delta(r.index, kind, text)
}

// finish ends the open item, if there is one.
func (r *Reply) finish() {
	text := r.text.String()
	switch r.open {
	case p.DeltaMessage:
		r.sink.Done(r.index, &p.AssistantMessage{Text: text})
	case p.DeltaReasoning:
		r.sink.Done(r.index, &p.Reasoning{Text: text})
	default:
		return
	}
	r.index++
	r.open = ""
	r.text.Reset()
}

// Delta is a part of an item that is not finished, in the order of the items: 0, 1, 2 … It is for models whose items
// overlap or carry more than Text, Reasoning and Call say; do not use both ways in one response.
func (r *Reply) Delta(index int, kind p.DeltaKind, text string) { r.sink.Delta(index, kind, text) }

// Done is a finished item, as in Delta: an AssistantMessage, a Reasoning or a ToolCall, whose ids the engine fills in.
func (r *Reply) Done(index int, item p.Body) { r.sink.Done(index, item) }

// A modelClient is a Model in the form that conversations use.
type modelClient struct{ model Model }

func clientOf(m Model) model.Client {
	if c, ok := native[model.Client](m); ok {
		return c
	}
	return modelClient{m}
}

// Stream implements model.Client.
func (c modelClient) Stream(ctx context.Context, pr model.Prompt, sink model.Sink) (model.End, error) {
	reply := &Reply{sink: sink}
	err := c.model.Stream(ctx, requestOf(pr), reply)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		reply.finish()
	}
	return model.End{ID: reply.id, Usage: reply.usage}, err
}

func requestOf(pr model.Prompt) Request {
	r := Request{
		Conversation: p.ConversationID(pr.CacheKey), Model: pr.Model, Instructions: pr.Instructions, Items: pr.Items,
		Effort: pr.Effort, Summary: pr.Summary, Verbosity: pr.Verbosity, OutputSchema: pr.OutputSchema,
		NoCalls: pr.NoCalls, Window: pr.Window, UnknownCalls: pr.UnknownCalls,
	}
	for _, t := range pr.Tools {
		r.Tools = append(r.Tools, ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: t.Strict, Grammar: t.Grammar})
	}
	return r
}

// isNil reports whether an interface holds nothing, or a nil pointer or function.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Interface:
		return r.IsNil()
	}
	return false
}
