package modeltest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

var errStopped = errors.New("stopped by the test")

// stopped streams until reached is closed, cancels, and checks that Stream
// returns with the cause.
func stoppedWhen(t *testing.T, a Adapter, cfg Config, reached <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	result := make(chan error, 1)
	rec := &Recorder{}
	c := a.New(cfg)
	go func() {
		_, err := c.Stream(ctx, Hello(), rec)
		result <- err
	}()
	Wait(t, "the point to stop at", reached)
	cancel(errStopped)
	select {
	case err := <-result:
		if !errors.Is(err, errStopped) {
			t.Errorf("Stream returned %v, want the cause", err)
		}
	case <-time.After(patience):
		t.Fatal("Stream did not return after its context ended")
	}
	for _, b := range rec.Broken {
		t.Errorf("rule of a sink broken: %s", b)
	}
}

func conformStops(t *testing.T, a Adapter) {
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStopped)
		s := New(t)
		if _, err := a.local(s).Stream(ctx, Hello(), &Recorder{}); !errors.Is(err, errStopped) {
			t.Errorf("Stream returned %v", err)
		}
		if n := len(s.Requests()); n != 0 {
			t.Errorf("%d requests were made", n)
		}
	})
	t.Run("while connecting", func(t *testing.T) {
		dialing := make(chan struct{})
		stoppedWhen(t, a, Config{URL: "http://model.test/v1", Key: Key, HTTP: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				close(dialing)
				<-t.Context().Done() // the transport goes on dialling by itself
				return nil, ctx.Err()
			},
		}}, dialing)
	})
	t.Run("in the TLS handshake", func(t *testing.T) { conformStopInHandshake(t, a) })
	gated := func(name string, before, after []Step) {
		t.Run(name, func(t *testing.T) {
			gate := NewGate()
			steps := append(append([]Step{}, before...), Pause(gate))
			s := New(t, Respond(append(steps, after...)...))
			stoppedWhen(t, a, Config{URL: s.URL(), Key: Key}, gate.Reached())
			Wait(t, "the server to see the hang-up", s.Wait(1).Gone())
		})
	}
	gated("while waiting for headers", nil, []Step{Say("x")})
	gated("after the headers", []Step{Headers()}, []Step{Say("x")})
	gated("in the middle of an event", []Step{Say("x"), Raw("data: {\"type\":\"resp")}, nil)
	gated("in the middle of a line end", []Step{Say("x"), Raw("data: {}\r")}, nil)
	t.Run("in the body of an error", func(t *testing.T) {
		conformStopInError(t, a)
	})
	t.Run("at every event", func(t *testing.T) { conformStopAtEvents(t, a) })
	t.Run("from the sink", func(t *testing.T) { conformStopFromSink(t, a) })
}

// conformStopInHandshake connects to a server that never answers the handshake.
func conformStopInHandshake(t *testing.T, a Adapter) {
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
	stoppedWhen(t, a, Config{URL: "https://" + ln.Addr().String() + "/v1", Key: Key}, began)
	Wait(t, "the server to see the hang-up", gone)
}

func conformStopInError(t *testing.T, a Adapter) {
	began := make(chan struct{})
	gone := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"error":`)
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(gone)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(ln)
	defer srv.Close()
	stoppedWhen(t, a, Config{URL: "http://" + ln.Addr().String() + "/v1", Key: Key}, began)
	Wait(t, "the server to see the hang-up", gone)
}

// conformStopAtEvents stops a response after each of its events in turn.
func conformStopAtEvents(t *testing.T, a Adapter) {
	steps := []Step{Think("h", "m"), Say("a", "b"), Call("call_1", "shell", nested)}
	for n := 1; ; n++ {
		gate := NewGate()
		s := New(t, Respond(append([]Step{pauseAfter(n, gate)}, steps...)...))
		s.URL()
		done := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		var err error
		rec := &Recorder{}
		go func() {
			defer close(done)
			_, err = a.dialing(s).Stream(ctx, Hello(), rec)
		}()
		select {
		case <-gate.Reached():
		case <-done:
			cancel(nil)
			if err != nil {
				t.Fatalf("uninterrupted: %v", err)
			}
			if n < 8 {
				t.Errorf("only %d events", n-1)
			}
			return
		}
		cancel(errStopped)
		Wait(t, "Stream to return", done)
		// The end mark may have been read before the stop was seen.
		if err != nil && !errors.Is(err, errStopped) {
			t.Errorf("after %d events: %v", n, err)
		}
		if err != nil {
			Wait(t, "the server to see the hang-up", s.Wait(1).Gone())
		}
		for _, b := range rec.Broken {
			t.Errorf("after %d events: rule of a sink broken: %s", n, b)
		}
	}
}

// conformStopFromSink stops while the sink has a piece in its hands: nothing
// follows it.
func conformStopFromSink(t *testing.T, a Adapter) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	pieces := strings.Split(strings.Repeat("x ", 200), " ")
	body := record(t, a, []Step{Say(pieces...)}) // all of it is there at once
	c := a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: replay{body, io.EOF}})
	rec := &Recorder{}
	rec.OnDelta = func(all string) {
		if len(all) == 5 {
			cancel(errStopped)
		}
	}
	if _, err := c.Stream(ctx, Hello(), rec); !errors.Is(err, errStopped) {
		t.Errorf("Stream returned %v", err)
	}
	if got := rec.Items[0].Text(); got != "xxxxx" {
		t.Errorf("%d pieces arrived, want 5", len(got))
	}
}

func conformSilence(t *testing.T, a Adapter) {
	const idle = 20 * time.Second
	tests := map[string]struct {
		steps []Step
		after time.Duration // 0 if it succeeds
	}{
		"from the beginning":     {[]Step{Stall()}, idle},
		"after the headers":      {[]Step{Headers(), Stall()}, idle},
		"after text":             {[]Step{Sleep(15 * time.Second), SayCut("some"), Stall()}, 15*time.Second + idle},
		"comments do not count":  {[]Step{SayCut("some"), Sleep(15 * time.Second), Raw(": still here\n\n"), Stall()}, idle},
		"nor do empty events":    {[]Step{SayCut("some"), Sleep(15 * time.Second), Raw("event: x\n\ndata:\n\n"), Stall()}, idle},
		"in the middle of event": {[]Step{SayCut("some"), Raw("data: {"), Stall()}, idle},
		"not long enough":        {[]Step{Sleep(19 * time.Second), Headers(), Sleep(19 * time.Second), Raw(": still here\n\n"), Say("x")}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(t, Respond(tt.steps...))
				begin := time.Now()
				o := run(t, t.Context(), a.New(Config{URL: "http://model.test/v1", Key: Key, HTTP: s.Transport(), Idle: idle}), Hello())
				if tt.after == 0 {
					o.wants(t, `text "x"`)
					return
				}
				var e *protocol.Error
				if !errors.As(o.err, &e) || e.Kind != protocol.ErrorConnection || !e.Retry || !strings.Contains(e.Message, "20s") {
					t.Errorf("error is %v", o.err)
				}
				if took := time.Since(begin); took != tt.after {
					t.Errorf("noticed after %v, want %v", took, tt.after)
				}
			})
		})
	}
	t.Run("by default 300 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(t, Respond(Stall()))
			begin := time.Now()
			o := run(t, t.Context(), a.local(s), Hello())
			wantConnectionError(t, o.err)
			if took := time.Since(begin); took != 300*time.Second {
				t.Errorf("noticed after %v", took)
			}
		})
	})
}
