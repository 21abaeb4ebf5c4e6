package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// refusal makes an error of an answer that is no stream.
func (s *Stream) refusal(status int, header http.Header, body []byte) *protocol.Error {
	c := ParseComplaint(body)
	if status != http.StatusOK || c.Status == 0 { // a gateway may put the real status into the body
		c.Status = status
	}
	now := time.Now()
	if after, ok := retryAfter(header, now); ok {
		c.After = after
	}
	if c.Resets == 0 {
		c.Resets = limitReset(header, now)
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

// classify makes an error of a complaint, and finds out which call or which
// optional member it is about.
func (s *Stream) classify(c Complaint) *protocol.Error {
	e := c.Error()
	if e.Call != nil {
		if id, ok := s.callIDs[e.Call.WireID]; ok {
			e.Call.WireID = id
		}
	}
	if e.Kind != protocol.ErrorRequest && e.Kind != protocol.ErrorModel && e.Part != protocol.PartReasoning {
		return e
	}
	if s.unwanted = unwantedMember(c, s.optional); s.unwanted != "" {
		return e
	}
	if e.Kind != protocol.ErrorRequest || s.fault == nil {
		return e
	}
	if f := s.fault(c); f != nil {
		e.Kind, e.Call = protocol.ErrorHistory, f
	}
	return e
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
