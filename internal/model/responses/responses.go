// Package responses speaks the OpenAI Responses wire. [New] returns a
// [model.Client]; request.go makes the body of a request and stream.go reads the answer.
//
// Nothing is stored by the service: every request carries the whole history, its
// beginning byte for byte the same as before, and reasoning is sent back in encrypted form.
package responses

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "responses"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.openai.com/v1"

// DefaultOriginator is the name that we send by default.
const DefaultOriginator = "fermata"

// Options say which service is used, and how. The zero value is OpenAI without a key.
type Options struct {
	BaseURL     string            // without the last element, /responses
	Key         string            // sent as a bearer token; none if empty
	Headers     map[string]string // added to every request
	Query       map[string]string // added to the address
	HTTP        http.RoundTripper // nil is the default transport
	Originator  string            // who asks; DefaultOriginator if empty
	Version     string            // of the program, for the User-Agent
	MaxTokens   int64             // most that a response may have; 0: the service decides
	RawThought  bool              // prefer the reasoning itself to its summary
	IdleTimeout time.Duration     // longest silence of the service; 0 is 300 s
}

type client struct {
	caller  *wire.Caller
	bad     error // why there is no caller
	headers map[string]string
	head    wire.Head
	refused wire.Optionals
	most    int64
	raw     bool
}

// New returns a client of a Responses service. A BaseURL that is not one is
// reported by every Stream.
func New(o Options) model.Client {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Originator == "" {
		o.Originator = DefaultOriginator
	}
	if o.Version == "" {
		o.Version = "0"
	}
	c := &client{most: o.MaxTokens, raw: o.RawThought, headers: map[string]string{
		"Originator": o.Originator,
		"User-Agent": fmt.Sprintf("%s/%s (%s; %s)", o.Originator, o.Version, runtime.GOOS, runtime.GOARCH),
	}}
	if o.Key != "" {
		c.headers["Authorization"] = "Bearer " + o.Key
	}
	c.caller, c.bad = wire.NewCaller(wire.Options{
		URL: wire.Address(o.BaseURL, "responses"), Headers: o.Headers, Query: o.Query, Secrets: []string{o.Key}, HTTP: o.HTTP, Idle: o.IdleTimeout,
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
		b := c.build(p)
		return wire.Request{Header: c.requestHeaders(p), Body: b.body, Optional: b.optional}
	})
	if err != nil {
		return model.End{}, err
	}
	defer s.Close()
	answer := &wire.Answer{Sink: sink}
	end, err := answer.End(read(s, p.Tools, answer, c.raw))
	return end, wire.Streaming(err)
}

func (c *client) requestHeaders(p model.Prompt) map[string]string {
	h := map[string]string{"OpenAI-Beta": "responses=experimental"}
	for k, v := range c.headers {
		h[k] = v
	}
	if p.CacheKey != "" {
		h["session_id"], h["session-id"], h["thread-id"] = p.CacheKey, p.CacheKey, p.CacheKey
	}
	return h
}
