// Package chat speaks the Chat Completions wire, which Ollama, vLLM, LM Studio,
// OpenRouter and many others offer. [New] returns a [model.Client]; request.go
// makes the body of a request and stream.go reads the answer.
//
// The servers differ in the details: in where reasoning stands, whether calls have
// an index or an id, when usage comes, and what the last event is. All of that is taken as it comes.
package chat

import (
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "chat"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which service is used, and how. The zero value is OpenAI without a key.
type Options = wire.Service

// format implements [wire.Format].
type format struct {
	wire.Memory
	headers   map[string]string
	maxTokens int64
}

// New returns a client of a Chat Completions service. A BaseURL that is not one
// is reported by every Stream.
func New(o Options) model.Client { return wire.NewClient(o, newFormat(o)) }

func newFormat(o Options) *format {
	if o.UserAgent == "" {
		o.UserAgent = "fermata"
	}
	f := &format{maxTokens: o.MaxTokens, headers: map[string]string{"User-Agent": o.UserAgent}}
	if o.Key != "" {
		f.headers["Authorization"] = "Bearer " + o.Key
	}
	return f
}

// Endpoint implements [wire.Format].
func (f *format) Endpoint() (base, element string) { return DefaultBaseURL, "chat/completions" }

// Build implements [wire.Format].
func (f *format) Build(p model.Prompt) wire.Request {
	r := f.build(p)
	return wire.Request{Header: f.headers, Body: r.body, Fault: r.fault, Optional: r.Sent(), CallIDs: r.original}
}

// Read implements [wire.Format].
func (f *format) Read(s *wire.Stream, p model.Prompt, sink model.Sink) (model.End, error) {
	return read(s, p.Tools, sink)
}
