// Package wire holds what the adapters of all model services have in common: one
// request over HTTP and the events of its answer, the errors that services give,
// and cheap JSON.
//
// A [Caller] sends requests; a [Stream] is one answer. A stream ends as soon as
// its context does, with the connection closed, and it is an error if it ends
// otherwise than by the wire's own end mark. No secret ever appears in an error.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model/sse"
	"github.com/fermata-agent/fermata/protocol"
)

const (
	// DefaultIdle is how long a service may be silent by default.
	DefaultIdle = 300 * time.Second

	errorBodyMax  = 1 << 20
	wholeMax      = 64 << 20
	errorBodyWait = 5 * time.Second

	// After the end mark the body normally ends at once. Waiting this long for it
	// saves the next request a new connection.
	drainWait = 25 * time.Millisecond
	drainMax  = 64 << 10
)

var errIdle = errors.New("idle")

// Options say how a service is reached.
type Options struct {
	URL     string            // of the endpoint; may have a query
	Headers map[string]string // added to every request
	Query   map[string]string // added to the URL
	Secrets []string          // never shown; values of Headers and Query are not either
	HTTP    http.RoundTripper // nil is a transport shared by all callers
	Idle    time.Duration     // longest silence; 0 is DefaultIdle
}

// A Caller sends requests to one endpoint. It may be used from any goroutine.
type Caller struct {
	url     string
	host    string
	headers map[string]string
	http    http.Client
	idle    time.Duration
	secrets []string
}

// shared is the transport of all callers that bring none: its idle connections
// are worth keeping from one request to the next.
var shared = newTransport()

// Address is the address of an element below a base address, whose query is kept.
func Address(base, element string) string {
	base, query, _ := strings.Cut(base, "?")
	address := strings.TrimRight(base, "/") + "/" + element
	if query != "" {
		address += "?" + query
	}
	return address
}

// NewCaller returns a Caller. The error says that the URL cannot be one.
func NewCaller(o Options) (*Caller, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("model service address %q is not a URL", redactURL(o.URL))
	}
	query := u.Query()
	c := &Caller{host: u.Host, headers: o.Headers, idle: o.Idle, secrets: append([]string(nil), o.Secrets...)}
	for k, v := range o.Query {
		query.Set(k, v)
		c.secrets = append(c.secrets, v)
	}
	for _, v := range o.Headers {
		c.secrets = append(c.secrets, v)
	}
	u.RawQuery = query.Encode()
	c.url = u.String()
	if c.idle <= 0 {
		c.idle = DefaultIdle
	}
	c.http.Transport = o.HTTP
	if o.HTTP == nil {
		c.http.Transport = shared
	}
	// A redirected POST would lose its body or its key silently.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

func redactURL(s string) string {
	s, _, _ = strings.Cut(s, "?")
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = "…" + s[i:]
	}
	return s
}

// A Request is one request of a caller.
type Request struct {
	Header map[string]string
	Body   []byte // JSON

	// Optional are the members of the body that it can do without. If the service
	// refuses one of them, Post returns an [UnwantedError].
	Optional []Optional

	// Fault, if set, finds the call that a refusal is about when the refusal
	// itself does not name it. It returns nil if it is about something else.
	Fault func(Complaint) *protocol.CallFault

	// CallIDs, if set, has our ids of calls by those that this request gives them.
	CallIDs map[string]string
}

// Post sends a request and returns the stream of events that answers it. The
// caller closes the stream. Every error but the context's cause is a *protocol.Error.
func (c *Caller) Post(ctx context.Context, r Request) (*Stream, error) {
	inner, cancel := context.WithCancelCause(ctx)
	s := &Stream{caller: c, ctx: ctx, inner: inner, cancel: cancel, fault: r.Fault, optional: r.Optional, callIDs: r.CallIDs}
	s.timer = time.AfterFunc(c.idle, func() { cancel(errIdle) })
	if err := s.open(r); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// A Stream is the answer to one request. It is used from one goroutine.
type Stream struct {
	caller *Caller
	ctx    context.Context // the caller's
	inner  context.Context // also ended by silence, and by Close
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends inner; runs only while we wait for the service
	body   io.ReadCloser
	events *sse.Reader
	fault  func(Complaint) *protocol.CallFault

	callIDs  map[string]string // see Request
	optional []Optional
	unwanted string        // the optional member that was refused, if one was
	whole    []byte        // an answer in one piece, where a stream was asked for
	awaiting bool          // Next runs
	waited   time.Duration // for the event that it returns
}

// An UnwantedError means that a service refuses a request for one of its optional
// members.
type UnwantedError struct {
	Member string
	Err    *protocol.Error
}

func (e *UnwantedError) Error() string { return e.Err.Message }

// Unwrap returns what the service said.
func (e *UnwantedError) Unwrap() error { return e.Err }

func (s *Stream) open(r Request) error {
	req, err := http.NewRequestWithContext(withRequest(s.inner), http.MethodPost, s.caller.url, bytes.NewReader(r.Body))
	if err != nil {
		return &protocol.Error{Kind: protocol.ErrorInternal, Message: "make request: " + s.caller.redact(err.Error())}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "identity") // a compressed stream arrives in lumps
	// Some servers close a connection that they have answered on. With this, which is not sent, net/http connects again
	// at once if a connection that was used before dies before it answers.
	req.Header["Idempotency-Key"] = []string{}
	for _, h := range []map[string]string{r.Header, s.caller.headers} {
		for k, v := range h {
			req.Header.Set(k, v)
		}
	}
	resp, err := s.caller.http.Do(req)
	if err != nil {
		return s.fail(err)
	}

	s.body = resp.Body
	s.timer.Stop()
	s.events = sse.NewReader((*idleReader)(s))
	return s.check(resp)
}

// check turns an answer that is no stream of events into an error, or into one event
// if it is a whole response. What kind of answer it is says its beginning: services
// label streams as JSON, and answer in one piece where a stream was asked for.
func (s *Stream) check(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind != "application/json" && kind != "text/html" {
		return nil
	}
	body := bufio.NewReader((*idleReader)(s))
	if resp.StatusCode == http.StatusOK && kind == "application/json" {
		if first := firstByte(body); first != '{' && first != '[' && first != 0 {
			s.events = sse.NewReader(body)
			return nil
		}
	}
	// What arrives of an error's body in a short time is enough to say what is wrong.
	wait, most := s.caller.idle, int64(wholeMax)
	if resp.StatusCode != http.StatusOK {
		wait, most = min(errorBodyWait, wait), errorBodyMax
	}
	stop := time.AfterFunc(wait, func() { s.cancel(errIdle) })
	defer stop.Stop()
	text, _ := io.ReadAll(io.LimitReader(body, most))
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if resp.StatusCode == http.StatusOK && isWhole(text) {
		s.whole = text
		return nil
	}
	e := s.caller.clean(s.refusal(resp.StatusCode, resp.Header, text))
	if s.unwanted != "" {
		return &UnwantedError{Member: s.unwanted, Err: e}
	}
	return e
}

// firstByte is the first byte that is not white space, which stays unread; 0 at the end.
func firstByte(r *bufio.Reader) byte {
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return 0
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
			continue
		}
		_ = r.UnreadByte() // one byte can always be put back
		return b
	}
}

// isWhole reports whether a body is a response of one of the wires in one piece.
func isWhole(body []byte) bool {
	found := false
	m := Scan(body)
	for m.Next() {
		switch string(m.Key) {
		case "choices", "output", "content":
			found = found || len(m.Value) > 0 && m.Value[0] == '['
		case "error":
			if string(m.Value) != "null" {
				return false
			}
		}
	}
	return found && m.Err() == nil
}

// Whole returns the answer if it came in one piece, and not as a stream.
func (s *Stream) Whole() []byte { return s.whole }

// Next returns the data of the next event, valid until Next is called again.
// The end of the body is an error: a wire has its own mark for the end.
//
// Comments and empty events only keep a connection open: the limit for silence
// holds from one event with data to the next.
func (s *Stream) Next() ([]byte, error) {
	data, err := s.awaitEvent()
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return data, nil
}

// awaitEvent returns the next event that has data. All reads together that it
// takes may wait as long as the service may be silent.
func (s *Stream) awaitEvent() ([]byte, error) {
	s.awaiting, s.waited = true, 0
	defer func() { s.awaiting = false }()
	for {
		data, err := s.events.Next()
		if err != nil || len(bytes.TrimSpace(data)) > 0 {
			return data, err
		}
	}
}

// idleReader reads the body, with the timer running only meanwhile: most events
// are there already, and need none.
type idleReader Stream

func (r *idleReader) Read(p []byte) (int, error) {
	if !r.awaiting {
		r.waited = 0
	}
	start := time.Now()
	r.timer.Reset(r.caller.idle - r.waited)
	defer func() {
		r.timer.Stop()
		r.waited += time.Since(start)
	}()
	return r.body.Read(p)
}

// Hurry makes the stream end by itself when the service is silent for d.
func (s *Stream) Hurry(d time.Duration) {
	c := *s.caller
	c.idle = min(c.idle, d)
	s.caller = &c
}

// Finish is Close for a stream whose end mark was seen: it gives the body a
// moment to end by itself, so that the connection can be used again.
func (s *Stream) Finish() {
	stop := time.AfterFunc(drainWait, func() { s.cancel(nil) })
	_, _ = io.Copy(io.Discard, io.LimitReader(s.body, drainMax))
	stop.Stop()
	s.Close()
}

// Close ends the stream at once. It may be called again.
func (s *Stream) Close() {
	s.timer.Stop()
	s.cancel(nil)
	if s.body != nil {
		s.body.Close()
	}
}

// fail says why a read or the request failed.
func (s *Stream) fail(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if context.Cause(s.inner) == errIdle {
		return connectionError("%s sent nothing for %v", s.caller.host, s.caller.idle)
	}
	if errors.Is(err, sse.ErrTooLong) {
		return &protocol.Error{Kind: protocol.ErrorModel, Message: "an event of the response is too long"}
	}
	if s.body != nil {
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return connectionError("%s closed the connection before the response was complete", s.caller.host)
		}
		return connectionError("connection to %s lost: %s", s.caller.host, s.caller.redact(err.Error()))
	}
	return s.caller.unreachable(err)
}

func connectionError(format string, args ...any) *protocol.Error {
	return &protocol.Error{Kind: protocol.ErrorConnection, Message: fmt.Sprintf(format, args...), Retry: true}
}
