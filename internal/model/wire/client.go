package wire

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// Service says which service is used, and how. The zero value is the wire's default service without a key.
type Service struct {
	BaseURL     string            // without the last elements, such as /responses; the format's default if empty
	Key         string            // sent as the wire wants it; none if empty
	Headers     map[string]string // added to every request
	Query       map[string]string // added to the address
	HTTP        http.RoundTripper // nil is the default transport
	UserAgent   string            // "fermata" if empty
	MaxTokens   int64             // most that a response may have; 0: the service or the model decides
	IdleTimeout time.Duration     // longest silence of the service; 0 is DefaultIdle

	// OutputLimit returns how much a model can write in one response, 0 if that is not known. It matters to the wire
	// on which each request has to say how much may be written. May be nil.
	OutputLimit func(model string) int64

	// Of the Responses wire only.
	Originator string // which program asks; "fermata" if empty
	Version    string // of that program, for the User-Agent
	RawThought bool   // prefer the reasoning itself to its summary
}

// A Format is one wire: how a prompt becomes a request, and how the answer is read.
type Format interface {
	// Endpoint returns the default base address, and what follows a base address.
	Endpoint() (base, element string)

	// Build makes a request. It is called again when the service refuses an optional member.
	Build(p model.Prompt) Request

	// Read passes an answer to sink until its end mark.
	Read(s *Stream, p model.Prompt, sink model.Sink) (model.End, error)

	// Refused remembers which optional members the service refuses.
	Refused() *Optionals
}

// Memory is what a format keeps from one request to the next. The zero value is ready; it may be used from any goroutine.
type Memory struct {
	Head    Head
	refused Optionals
}

// Refused implements [Format].
func (m *Memory) Refused() *Optionals { return &m.refused }

// Extras returns what a request that is being built can do without.
func (m *Memory) Extras() Extras { return Extras{refused: &m.refused} }

// Extras are the optional members of one request: those that it can do without.
type Extras struct {
	refused *Optionals
	sent    []Optional
}

// May reports whether an optional member can be sent, and notes that it is.
func (m *Extras) May(o Optional) bool {
	if m.refused.Refused(o.Name) {
		return false
	}
	for _, has := range m.sent {
		if has.Name == o.Name {
			return true
		}
	}
	m.sent = append(m.sent, o)
	return true
}

// Refused reports whether the service refuses a member.
func (m *Extras) Refused(o Optional) bool { return m.refused.Refused(o.Name) }

// Sent returns the members that the request has.
func (m *Extras) Sent() []Optional { return m.sent }

// A client sends prompts to one service in one format.
type client struct {
	format Format
	caller *Caller
	bad    error // why there is no caller
}

// NewClient returns a client of a service. A BaseURL that is not one is reported by every Stream.
func NewClient(s Service, f Format) model.Client {
	base, element := f.Endpoint()
	if s.BaseURL != "" {
		base = s.BaseURL
	}
	c := &client{format: f}
	c.caller, c.bad = NewCaller(Options{
		URL: Address(base, element), Headers: s.Headers, Query: s.Query, Secrets: []string{s.Key}, HTTP: s.HTTP, Idle: s.IdleTimeout,
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

	s, err := c.post(ctx, p)
	if err != nil {
		return model.End{}, err
	}
	defer s.Close()
	answer := &Answer{Sink: sink}
	end, err := answer.End(c.format.Read(s, p, answer))
	return end, Streaming(err)
}

// post sends a prompt, and sends it again without the optional members that the service refuses.
func (c *client) post(ctx context.Context, p model.Prompt) (*Stream, error) {
	known := c.format.Refused()
	for tries := 0; ; tries++ {
		r := c.format.Build(p)
		s, err := c.caller.Post(ctx, r)
		var unwanted *UnwantedError
		if !errors.As(err, &unwanted) {
			return s, err
		}
		if tries >= len(r.Optional) || known.Refused(unwanted.Member) {
			return nil, unwanted.Err
		}
		known.Remember(unwanted.Member)
	}
}
