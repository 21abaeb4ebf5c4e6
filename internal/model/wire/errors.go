package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/protocol"
)

// textMax is how much of a body is shown when it is not the JSON of an error.
const textMax = 2000

// A Complaint is what a service says went wrong, in an answer or in a stream.
type Complaint struct {
	Status  int // 0 in a stream
	Type    string
	Code    string
	Message string
	Param   string
	After   time.Duration // how long to wait, if it said so
	Resets  time.Duration // when a usage limit is lifted, if it said so
	Body    []byte        // all it said
}

// refusal makes an error of an answer that is no stream.
func (s *Stream) refusal(status int, header http.Header, body []byte) *protocol.Error {
	c := ParseComplaint(body)
	c.Status = status
	if after, ok := retryAfter(header, time.Now()); ok {
		c.After = after
	}
	if status/100 == 3 {
		to := redactURL(header.Get("Location"))
		return &protocol.Error{Kind: protocol.ErrorRequest, Message: fmt.Sprintf("the service redirects to %s", to), Hint: "set base_url to the address it redirects to"}
	}
	if status == http.StatusOK && c.Type == "" && c.Code == "" {
		return &protocol.Error{Kind: protocol.ErrorModel, Message: "the service answered without a stream", Hint: "check base_url and wire_api"}
	}
	return s.classify(c)
}

// classify makes an error of a complaint, and finds out which call it is about.
func (s *Stream) classify(c Complaint) *protocol.Error {
	e := c.Error()
	if e.Kind != protocol.ErrorRequest || s.fault == nil {
		return e
	}
	if f := s.fault(c); f != nil {
		e.Kind, e.Call = protocol.ErrorHistory, f
	}
	return e
}

// ParseComplaint reads the body of an error in any of the forms in use:
// {"error":{…}}, {"error":"…"}, {"message":"…"}, {"detail":"…"}, a list of those, or text.
func ParseComplaint(body []byte) Complaint {
	c := Complaint{Body: body}
	var list []json.RawMessage
	obj := body
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		obj = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(obj, &outer) != nil {
		c.Message = shorten(string(body))
		return c
	}
	var inner struct {
		Message string          `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
		Param   json.RawMessage `json:"param"`
		Resets  float64         `json:"resets_in_seconds"`
	}
	text := ""
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil:
		c.Message, c.Type, c.Code, c.Param = inner.Message, word(inner.Type), word(inner.Code), word(inner.Param)
		c.Resets = seconds(inner.Resets)
	case json.Unmarshal(outer.Error, &text) == nil, json.Unmarshal(outer.Detail, &text) == nil:
		c.Message = text
	default:
		c.Message, c.Type = outer.Message, outer.Type
	}
	if c.Message == "" {
		c.Message = shorten(string(body))
	}
	return c
}

// word is a JSON string or number as text.
func word(raw json.RawMessage) string {
	if s, ok := String(raw); ok {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func shorten(s string) string {
	s = strings.TrimSpace(s)
	if len(s) <= textMax {
		return s
	}
	n := textMax
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func seconds(f float64) time.Duration {
	if !(f > 0 && f < 1e9) {
		return 0
	}
	return time.Duration(f * float64(time.Second))
}

// retryAfter reads the headers by which a service says how long to wait.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return seconds(ms / 1000), true
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 {
		return seconds(s), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

var tryAgain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|s\b|sec|m\b|min)`)
})

// waitIn finds the wait that a rate-limit message names: "try again in 1.5s".
func waitIn(message string) time.Duration {
	m := tryAgain().FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	switch strings.ToLower(m[2]) {
	case "ms":
		n /= 1000
	case "m", "min":
		n *= 60
	}
	return seconds(n)
}

func (c Complaint) is(words ...string) bool {
	for _, w := range words {
		if c.Type == w || c.Code == w {
			return true
		}
	}
	return false
}

func (c Complaint) says(phrases ...string) bool {
	text := strings.ToLower(c.Message)
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// Error makes a typed error of what a service said.
func (c Complaint) Error() *protocol.Error {
	e := &protocol.Error{Message: c.Message, After: c.After}
	if e.Message == "" {
		e.Message = "the model service failed"
		if c.Status != 0 {
			e.Message = fmt.Sprintf("the model service answered %d %s", c.Status, http.StatusText(c.Status))
		}
	}
	for _, rule := range rules {
		if rule.when(c) {
			rule.then(c, e)
			break
		}
	}
	if !e.Retry {
		e.After = 0
	}
	return e
}

// kind is what a rule with a fixed outcome does.
func kind(k protocol.ErrorKind, hint string) func(Complaint, *protocol.Error) {
	return func(_ Complaint, e *protocol.Error) { e.Kind, e.Hint = k, hint }
}

// rules turn a complaint into an error; the first that fits counts.
var rules = []struct {
	when func(Complaint) bool
	then func(Complaint, *protocol.Error)
}{
	{
		func(c Complaint) bool { return c.fault() != nil },
		func(c Complaint, e *protocol.Error) { e.Kind, e.Call = protocol.ErrorHistory, c.fault() },
	},
	{
		func(c Complaint) bool {
			return c.is("context_length_exceeded", "model_max_prompt_tokens_exceeded") || c.Status != http.StatusTooManyRequests &&
				c.says("maximum context length", "context window", "context length", "context_length_exceeded", "prompt is too long", "input is too long", "exceeds the context", "exceed the context")
		},
		kind(protocol.ErrorContextLength, "compact the conversation, or use a model with a larger context window"),
	},
	{
		func(c Complaint) bool {
			return c.is("usage_limit_reached", "usage_not_included", "insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active") ||
				c.Status == http.StatusPaymentRequired || c.says("credit balance is too low")
		},
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Hint = protocol.ErrorUsageLimit, "check your plan and billing"
			if c.Resets > 0 {
				e.Hint = "the limit is lifted in " + c.Resets.Round(time.Second).String()
			}
		},
	},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusTooManyRequests || c.is("rate_limit_exceeded", "rate_limit_error", "too_many_requests")
		},
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Retry = protocol.ErrorRateLimit, true
			if e.After == 0 {
				e.After = waitIn(c.Message)
			}
		},
	},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusUnauthorized || c.Status == http.StatusForbidden || c.is("invalid_api_key", "authentication_error", "permission_error")
		},
		kind(protocol.ErrorAuth, "check the API key of this provider"),
	},
	{
		func(c Complaint) bool {
			return c.is("model_not_found") || c.Status == http.StatusNotFound && c.says("model") || c.Status == http.StatusBadRequest && c.noSuchModel()
		},
		kind(protocol.ErrorUnknownModel, "check the name of the model, or choose another with -m"),
	},
	{
		func(c Complaint) bool {
			return c.Status == http.StatusNotFound || c.Status == http.StatusMethodNotAllowed
		},
		kind(protocol.ErrorRequest, "check base_url and wire_api of this provider"),
	},
	{
		func(c Complaint) bool {
			return c.Status == 0 && !c.is("invalid_request_error", "invalid_prompt", "content_filter", "content_policy_violation") || c.Status >= 500 ||
				c.Status == http.StatusRequestTimeout || c.Status == http.StatusConflict
		},
		func(c Complaint, e *protocol.Error) {
			e.Kind, e.Retry = protocol.ErrorModel, true
			if c.Status != 0 && len(c.Body) > 0 && c.Type == "" && c.Code == "" {
				e.Message = fmt.Sprintf("the model service answered %d: %s", c.Status, e.Message)
			}
		},
	},
	{func(Complaint) bool { return true }, kind(protocol.ErrorRequest, "")},
}

func (c Complaint) noSuchModel() bool {
	return c.says("model") && c.says("does not exist", "not found", "not a valid model", "unknown model", "model_not_found", "no such model")
}

// unreachable is why a request got no answer at all.
func (c *Caller) unreachable(err error) *protocol.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, whose query may hold a key
	}
	text := c.redact(err.Error())
	if errors.Is(err, io.EOF) {
		text = "it closed the connection without an answer"
	}
	e := connectionError("cannot reach %s: %s", c.host, text)
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
	)
	if errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid) || errors.As(err, &record) {
		e.Retry = false
		e.Hint = "check base_url: the service's certificate is not accepted, or it does not speak TLS"
	}
	return e
}

var keyLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b((?:sk|pk|rk)-|Bearer )[A-Za-z0-9_*.\-]{6,}`)
})

// redact takes secrets out of a text.
func (c *Caller) redact(s string) string {
	for _, secret := range c.secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return keyLike().ReplaceAllString(s, "$1***")
}

func (c *Caller) clean(e *protocol.Error) *protocol.Error {
	e.Message, e.Hint = c.redact(e.Message), c.redact(e.Hint)
	return e
}

// Failed makes an error of a complaint that came in the stream.
func (s *Stream) Failed(c Complaint) *protocol.Error { return s.caller.clean(s.classify(c)) }

// Streaming marks an error as one of a response that had begun.
func Streaming(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		e.Streaming = true
	}
	return err
}

// Garbled is the error for an event that cannot be read.
func Garbled(data []byte) *protocol.Error {
	return &protocol.Error{
		Kind: protocol.ErrorModel, Retry: true,
		Message: fmt.Sprintf("cannot read an event of the response (%d bytes, begins %q)", len(data), data[:min(len(data), 40)]),
	}
}

// IsJSON reports whether the data of an event is meant to be an object; keep-alive
// texts and end marks are not.
func IsJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }
