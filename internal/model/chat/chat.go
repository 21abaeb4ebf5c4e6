// Package chat speaks the Chat Completions wire, which Ollama, vLLM, LM Studio,
// OpenRouter and many others offer. [New] returns a [model.Client]; request.go
// makes the body of a request and stream.go reads the answer.
//
// The servers differ in the details: in where reasoning stands, whether calls have
// an index or an id, when usage comes, and what the last event is. All of that is taken as it comes.
package chat

import (
	"context"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "chat"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which service is used, and how. The zero value is OpenAI without a key.
type Options struct {
	BaseURL     string            // without the last elements, /chat/completions
	Key         string            // sent as a bearer token; none if empty
	Headers     map[string]string // added to every request
	Query       map[string]string // added to the address
	HTTP        http.RoundTripper // nil is the default transport
	MaxTokens   int64             // most that a response may have; 0: the service decides
	UserAgent   string            // how we introduce ourselves
	IdleTimeout time.Duration     // longest silence of the service; 0 is 300 s
}

type client struct {
	caller  *wire.Caller
	bad     error // why there is no caller
	headers map[string]string
	head    wire.Head
	refused wire.Optionals
	most    int64
}

// New returns a client of a Chat Completions service. A BaseURL that is not one
// is reported by every Stream.
func New(o Options) model.Client {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.UserAgent == "" {
		o.UserAgent = "fermata"
	}
	c := &client{most: o.MaxTokens, headers: map[string]string{"User-Agent": o.UserAgent}}
	if o.Key != "" {
		c.headers["Authorization"] = "Bearer " + o.Key
	}
	c.caller, c.bad = wire.NewCaller(wire.Options{
		URL: wire.Address(o.BaseURL, "chat/completions"), Headers: o.Headers, Query: o.Query, Secrets: []string{o.Key}, HTTP: o.HTTP, Idle: o.IdleTimeout,
	})
	return c
}

// Stream implements [model.Client].
func (c *client) Stream(ctx context.Context, p model.Prompt, sink model.Sink) (model.End, error) {
	if c.bad != nil {
		return model.End{}, &protocol.Error{Kind: protocol.ErrorRequest, Message: c.bad.Error(), Hint: "check base_url of this provider"}
	}
	if ctx.Err() != nil {
		return model.End{}, context.Cause(ctx)
	}

	s, err := c.caller.PostWithout(ctx, &c.refused, func() wire.Request {
		req := c.build(p)
		return wire.Request{Header: c.headers, Body: req.body, Fault: req.fault, Optional: req.optional}
	})
	if err != nil {
		return model.End{}, err
	}
	defer s.Close()
	answer := &wire.Answer{Sink: sink}
	end, err := answer.End(read(s, p.Tools, answer))
	return end, wire.Streaming(err)
}
