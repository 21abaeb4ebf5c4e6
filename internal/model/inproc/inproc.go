// Package inproc carries HTTP requests to a handler in the same process, without
// a network: a client that speaks HTTP can then be used where there is no socket,
// and inside a testing/synctest bubble.
package inproc

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// Transport returns a RoundTripper that passes every request to h. The handler
// runs in a goroutine of its own; its request's context ends when the response's
// body is closed or the request's own context ends. Closing the body waits for the handler
// to return. A handler that panics cuts the body short.
func Transport(h http.Handler) http.RoundTripper { return &transport{h} }

type transport struct{ handler http.Handler }

// RoundTrip passes r to the handler and returns when that has begun to answer.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	pr, pw := io.Pipe()
	w := &writer{header: http.Header{}, pipe: pw, begun: make(chan struct{})}
	x := &exchange{pipe: pr, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		t.serve(w, serverSide(ctx, r))
	}()

	select {
	case <-w.begun:
	case <-ctx.Done():
		x.Close()
		return nil, ctx.Err()
	}
	x.stop = context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: x, ContentLength: -1, Request: r,
	}, nil
}

func serverSide(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

func (t *transport) serve(w *writer, r *http.Request) {
	whole := false
	defer func() {
		r.Body.Close()
		if whole {
			w.WriteHeader(http.StatusOK)
			w.pipe.CloseWithError(r.Context().Err()) // nil makes it a regular end
			return
		}
		_ = recover() // an abort is how a handler cuts a connection
		w.pipe.CloseWithError(io.ErrUnexpectedEOF)
		w.WriteHeader(http.StatusOK)
	}()
	t.handler.ServeHTTP(w, r)
	whole = true
}

// A writer is what the handler writes to. It is used by the handler's goroutine
// only; sent and status are read by others after begun is closed.
type writer struct {
	header http.Header
	pipe   *io.PipeWriter
	begun  chan struct{} // closed by the first WriteHeader
	sent   http.Header
	status int
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	close(w.begun)
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush sends the headers; what was written is never held back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// An exchange is the body of a response.
type exchange struct {
	pipe   *io.PipeReader
	cancel context.CancelFunc
	done   chan struct{} // closed when the handler has returned
	stop   func() bool
}

func (x *exchange) Read(p []byte) (int, error) { return x.pipe.Read(p) }

// Close ends the handler's context and waits for it.
func (x *exchange) Close() error {
	x.cancel()
	if x.stop != nil {
		x.stop()
	}
	x.pipe.Close()
	<-x.done
	return nil
}
