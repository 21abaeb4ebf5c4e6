// Package provider says which model service is used, and how. The packages below it are models of services, one for each
// way in which services are spoken to: openai for OpenAI's Responses API, chat for the Chat Completions API that most
// other services and local servers have, anthropic for Anthropic's Messages API. Package demo needs no service.
package provider

import (
	"net/http"
	"time"
)

// A Service is a model service. The zero value is the default service of the package that uses it, without a key.
// Which model of it is used says protocol.Settings.Model.
type Service struct {
	BaseURL     string            // without the last elements, such as /responses; empty is the package's default service
	Key         string            // sent as the service wants it; empty sends none
	Headers     map[string]string // added to every request
	Query       map[string]string // added to the address
	HTTP        http.RoundTripper // how requests are sent; nil is http.DefaultTransport
	UserAgent   string            // names the program to the service; empty is "fermata"
	MaxTokens   int64             // how long a response may be; 0 leaves it to the service or the model
	IdleTimeout time.Duration     // how long the service may be silent before the request is made again; 0 is five minutes

	// OutputLimit returns how many tokens a model can write in one response, 0 if that is not known. Package anthropic
	// uses it: each request of that service says how much may be written. May be nil.
	OutputLimit func(model string) int64

	// The following are used by package openai only.
	Originator string // which program makes the request; empty is "fermata"
	Version    string // of that program
	RawThought bool   // prefer the reasoning itself to its summary
}
