// Package anthropic speaks the Anthropic Messages wire. [New] returns a
// [model.Client]; request.go makes the body of a request and stream.go reads the answer.
//
// Thinking goes back with its signature, calls and results stand in the order in
// which the service wants them, and the parts of a request that stay the same are marked for its cache.
// The service keeps nothing between requests, so Prompt.UnknownCalls means nothing here.
package anthropic

import (
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "anthropic"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.anthropic.com/v1"

// Version is the version of the wire that we speak.
const Version = "2023-06-01"

// Options say which service is used, and how. The zero value is Anthropic without a key.
type Options = wire.Service

// format implements [wire.Format].
type format struct {
	wire.Memory
	headers   map[string]string
	maxTokens int64

	knownLimit func(model string) int64 // how much a model can write, 0 if that is not known; may be nil
}

// New returns a client of a Messages service. A BaseURL that is not one is
// reported by every Stream.
func New(o Options) model.Client { return wire.NewClient(o, newFormat(o)) }

func newFormat(o Options) *format {
	if o.UserAgent == "" {
		o.UserAgent = "fermata"
	}
	f := &format{maxTokens: o.MaxTokens, knownLimit: o.OutputLimit, headers: map[string]string{"User-Agent": o.UserAgent, "anthropic-version": Version}}
	if o.Key != "" {
		f.headers["x-api-key"] = o.Key
	}
	return f
}

// Endpoint implements [wire.Format].
func (f *format) Endpoint() (base, element string) { return DefaultBaseURL, "messages" }

// Build implements [wire.Format].
func (f *format) Build(p model.Prompt) wire.Request {
	b := f.build(p)
	return wire.Request{Header: f.headers, Body: b.body, Optional: b.Sent(), CallIDs: b.original}
}

// Read implements [wire.Format].
func (f *format) Read(s *wire.Stream, p model.Prompt, sink model.Sink) (model.End, error) {
	return read(s, p.Tools, sink)
}
