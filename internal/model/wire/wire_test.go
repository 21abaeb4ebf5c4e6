package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fermata-agent/fermata/internal/model/sse"
	"github.com/fermata-agent/fermata/protocol"
)

func post(t *testing.T, ctx context.Context, u string) (*Stream, error) {
	t.Helper()
	c, err := NewCaller(Options{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	return c.Post(ctx, Request{Body: []byte("{}")})
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data: end\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for range 3 {
		s, err := post(t, ctx, srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := s.Next(); err != nil || string(data) != "end" {
			t.Errorf("event %q, %v", data, err)
		}
		s.Finish()
	}
	if reused != 2 {
		t.Errorf("%d connections were used again, want 2", reused)
	}
}

func TestTheEndOfTheBodyIsAnError(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "data: x\n\n") }))
	defer srv.Close()
	s, err := post(t, t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Next()
	_, err = s.Next()
	var e *protocol.Error
	if !errors.As(err, &e) || e.Kind != protocol.ErrorConnection || !e.Retry || !strings.Contains(e.Message, "before the response was complete") {
		t.Errorf("error is %v", err)
	}
}

func TestFinishReadsToTheEnd(t *testing.T) {
	end := &endReader{}
	c, err := NewCaller(Options{URL: "http://x.test", HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("data: x\n\n"), end)), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Post(t.Context(), Request{Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	s.Next()
	if end.read {
		t.Fatal("the end was read before it was asked for")
	}
	s.Finish()
	if !end.read {
		t.Error("the end was not read")
	}
}

type endReader struct{ read bool }

func (r *endReader) Read([]byte) (int, error) {
	r.read = true
	return 0, io.EOF
}

// A handshake that hangs ends with the request it is for.
func TestAStopInTheHandshake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	began, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.Read(make([]byte, 1))
		close(began)
		io.Copy(io.Discard, conn) // until the client hangs up
	}()
	tr := newTransport()
	tr.TLSHandshakeTimeout = 0 // must not be what ends it
	c, err := NewCaller(Options{URL: "https://" + ln.Addr().String(), HTTP: tr})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := c.Post(ctx, Request{Body: []byte("{}")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	<-gone
}

func TestAnEventThatIsTooLongIsNotRetried(t *testing.T) {
	body := io.NopCloser(iotest.ErrReader(sse.ErrTooLong))
	c, err := NewCaller(Options{URL: "http://x.test", HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Post(t.Context(), Request{Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Next()
	var e *protocol.Error
	if !errors.As(err, &e) || e.Retry {
		t.Errorf("error is %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHurry(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer srv.Close()
	s, err := post(t, t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Next()
	s.Hurry(time.Millisecond)
	if _, err := s.Next(); err == nil {
		t.Error("no error")
	}
	s.Close()
	<-gone
}

// A dial that is under way ends with the request it is for, and no other.
func TestBoundDial(t *testing.T) {
	dialing := make(chan struct{})
	blocked := bound(func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := blocked(context.WithoutCancel(withRequest(ctx)), "tcp", "x")
		done <- err
	}()
	<-dialing
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}

	plain := bound(func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, ctx.Err() })
	if _, err := plain(t.Context(), "tcp", "x"); err != nil {
		t.Errorf("without a request: %v", err)
	}
}

func TestHTTP2IsSpoken(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: "+r.Proto+"\n\n")
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	tr := newTransport()
	defer tr.CloseIdleConnections()
	pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	tr.DialTLSContext = bound(tlsDialer(&net.Dialer{}, pool))
	c, err := NewCaller(Options{URL: srv.URL, HTTP: tr})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Post(t.Context(), Request{Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if data, err := s.Next(); err != nil || string(data) != "HTTP/2.0" {
		t.Errorf("spoken: %s, %v", data, err)
	}
}

// A server that closes a connection which it has answered on is asked again over another one at once. One that closes a
// new connection is not: that is an error.
func TestAReusedConnectionThatDies(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 12\r\n\r\ndata: end\n\n\n"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var connections, requests atomic.Int32
	dead := atomic.Bool{}
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for first := true; ; first = false {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					requests.Add(1)
					if req.Header.Get("Idempotency-Key") != "" || !first || dead.Load() {
						return
					}
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	c, err := NewCaller(Options{URL: "http://" + l.Addr().String(), HTTP: newTransport()})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s, err := c.Post(t.Context(), Request{Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := s.Next(); err != nil || string(data) != "end" {
			t.Fatalf("event %q, %v", data, err)
		}
		s.Finish()
	}
	if connections.Load() != 3 || requests.Load() != 5 {
		t.Errorf("%d requests over %d connections, want 5 over 3", requests.Load(), connections.Load())
	}
	dead.Store(true)
	if _, err := c.Post(t.Context(), Request{Body: []byte("{}")}); err == nil {
		t.Error("a server that answers nothing is no error")
	}
}
