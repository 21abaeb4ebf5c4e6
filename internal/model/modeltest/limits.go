package modeltest

import (
	"fmt"
	"net/http"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// Limits make a server count tokens, four bytes of a request each, and refuse what is
// too long as the service of the wire does.
type Limits struct {
	Window  int64
	Unnamed bool // a refusal does not say what the window is
	NoUsage bool // responses do not say what they cost
	Strict  bool // calls in a history without tools are refused, as a proxy for Bedrock does
}

// Limit sets the limits. The script answers what is not refused.
func (s *Server) Limit(l Limits) {
	s.with(func(st *state) { st.limits = &l })
}

// Tokens is how many tokens a request has.
func (r *Request) Tokens() int64 {
	n := int64(len(r.Raw)) / 4
	if most, ok := r.head.MaxTokens.(float64); ok && r.Wire == wirecheck.Anthropic {
		n += int64(most)
	}
	return n
}

// Refusals counts the requests that were refused for their length.
func (s *Server) Refusals() (n int) {
	for _, r := range s.Requests() {
		if r.TooLong {
			n++
		}
	}
	return n
}

// limited is how a request is answered that breaks a limit.
func (l *Limits) limited(req *Request) (Reply, bool) {
	if l.Strict && len(req.List("tools")) == 0 {
		for _, it := range req.Items {
			if it.Kind == wirecheck.Call {
				return Status(http.StatusBadRequest, `{"error":{"message":"The toolConfig field must be defined when using toolUse and toolResult content blocks."}}`), true
			}
		}
	}
	n := req.Tokens()
	if n <= l.Window {
		return Reply{}, false
	}
	req.TooLong = true
	message := fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens.", l.Window, n)
	if req.Wire == wirecheck.Anthropic {
		message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, l.Window)
	}
	if l.Unnamed {
		message = "Please reduce the length of the messages."
	}
	return Status(http.StatusBadRequest, emit.Marshal(obj{"error": obj{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})), true
}

// count makes a reply say what it costs.
func (l *Limits) count(req *Request, reply Reply) Reply {
	if l.NoUsage {
		reply.usage = func() *protocol.Usage { return nil }
		return reply
	}
	n := int64(len(req.Raw)) / 4
	reply.usage = func() *protocol.Usage { return &protocol.Usage{Input: n, Output: 20, Total: n + 20} }
	return reply
}
