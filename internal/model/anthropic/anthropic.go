// Package anthropic speaks the Anthropic Messages wire. [New] returns a
// [model.Client]; request.go makes the body of a request and stream.go reads the answer.
//
// Thinking goes back with its signature, calls and results stand in the order in
// which the service wants them, and the parts of a request that stay the same are marked for its cache.
// The service keeps nothing between requests, so Prompt.UnknownCalls means nothing here.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// Wire is the name under which this wire keeps raw items.
const Wire = "anthropic"

// DefaultBaseURL is the service that is used unless another is named.
const DefaultBaseURL = "https://api.anthropic.com/v1"

// Version is the version of the wire that we speak.
const Version = "2023-06-01"

// Options say which service is used, and how. The zero value is Anthropic without a key.
type Options struct {
	BaseURL     string            // without the last element, /messages
	Key         string            // sent as x-api-key; none if empty
	Headers     map[string]string // added to every request
	Query       map[string]string // added to the address
	HTTP        http.RoundTripper // nil is the default transport
	UserAgent   string            // how we introduce ourselves
	MaxTokens   int               // most that a response may have; 0 is what the model can do
	IdleTimeout time.Duration     // longest silence of the service; 0 is 300 s
}

type client struct {
	caller    *wire.Caller
	bad       error // why there is no caller
	headers   map[string]string
	maxTokens int
	head      wire.Head
	refused   wire.Optionals
}

// New returns a client of a Messages service. A BaseURL that is not one is
// reported by every Stream.
func New(o Options) model.Client {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.UserAgent == "" {
		o.UserAgent = "fermata"
	}
	c := &client{maxTokens: o.MaxTokens, headers: map[string]string{"User-Agent": o.UserAgent, "anthropic-version": Version}}
	if o.Key != "" {
		c.headers["x-api-key"] = o.Key
	}
	c.caller, c.bad = wire.NewCaller(wire.Options{
		URL: wire.Address(o.BaseURL, "messages"), Headers: o.Headers, Query: o.Query, Secrets: []string{o.Key}, HTTP: o.HTTP, Idle: o.IdleTimeout,
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

	var b *builder
	s, err := c.caller.PostWithout(ctx, &c.refused, func() wire.Request {
		b = c.build(p)
		return wire.Request{Header: c.headers, Body: b.body, Optional: b.optional}
	})
	if err != nil {
		return model.End{}, b.rename(err)
	}
	defer s.Close()
	answer := &wire.Answer{Sink: sink}
	end, err := answer.End(read(s, p.Tools, answer))
	return end, wire.Streaming(b.rename(err))
}

// rename makes an error about a call name it as we do.
func (b *builder) rename(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) && e.Call != nil {
		if id, ok := b.original[e.Call.WireID]; ok {
			e.Call.WireID = id
		}
	}
	return err
}
