// Package responses speaks the OpenAI Responses wire. [New] returns a
// [model.Client]; request.go makes the body of a request and stream.go reads the answer.
//
// Nothing is stored by the service: every request carries the whole history, its
// beginning byte for byte the same as before, and reasoning is sent back in encrypted form.
package responses

import (
	"fmt"
	"runtime"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "responses"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.openai.com/v1"

// DefaultOriginator is the name that we send by default.
const DefaultOriginator = "fermata"

// Options say which service is used, and how. The zero value is OpenAI without a key.
type Options = wire.Service

// format implements [wire.Format].
type format struct {
	wire.Memory
	headers   map[string]string
	maxTokens int64
	raw       bool // prefer the reasoning itself to its summary
}

// New returns a client of a Responses service. A BaseURL that is not one is
// reported by every Stream.
func New(o Options) model.Client { return wire.NewClient(o, newFormat(o)) }

func newFormat(o Options) *format {
	if o.Originator == "" {
		o.Originator = DefaultOriginator
	}
	if o.Version == "" {
		o.Version = "0"
	}
	f := &format{maxTokens: o.MaxTokens, raw: o.RawThought, headers: map[string]string{
		"Originator": o.Originator,
		"User-Agent": fmt.Sprintf("%s/%s (%s; %s)", o.Originator, o.Version, runtime.GOOS, runtime.GOARCH),
	}}
	if o.Key != "" {
		f.headers["Authorization"] = "Bearer " + o.Key
	}
	return f
}

// Endpoint implements [wire.Format].
func (f *format) Endpoint() (base, element string) { return DefaultBaseURL, "responses" }

// Build implements [wire.Format].
func (f *format) Build(p model.Prompt) wire.Request {
	b := f.build(p)
	return wire.Request{Header: f.requestHeaders(p), Body: b.body, Optional: b.Sent()}
}

// Read implements [wire.Format].
func (f *format) Read(s *wire.Stream, p model.Prompt, sink model.Sink) (model.End, error) {
	return read(s, p.Tools, sink, f.raw)
}

func (f *format) requestHeaders(p model.Prompt) map[string]string {
	h := map[string]string{"OpenAI-Beta": "responses=experimental"}
	for k, v := range f.headers {
		h[k] = v
	}
	if p.CacheKey != "" {
		h["session_id"], h["session-id"], h["thread-id"] = p.CacheKey, p.CacheKey, p.CacheKey
	}
	return h
}
