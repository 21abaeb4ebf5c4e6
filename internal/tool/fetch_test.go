package tool

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

func pages(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html><head><title>T</title><script>evil()</script></head><body><h1>Head</h1><p>a &amp; <b>b</b></p><!-- no --></body></html>"))
	})
	mux.HandleFunc("/bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0, 1})
	})
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/html", http.StatusFound) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestFetch(t *testing.T) {
	base := pages(t)
	for path, want := range map[string]string{
		"/html": "T\n\nHead\n\na & b", "/there": "T\n\nHead\n\na & b", "/bin": "! fetch: the page is application/octet-stream, not text",
		"/none": "! fetch: 404 Not Found",
	} {
		h := &fakeHost{}
		out := (&Fetch{}).Run(t.Context(), call(h, t.TempDir(), params{"url": base + path})).Output
		want, fails := strings.CutPrefix(want, "! ")
		if !strings.HasPrefix(out.Output, want) || out.Failed != fails || len(h.events) != 1 {
			t.Errorf("%s: %+v, recorded %v", path, out, h.events)
		}
	}
	for _, bad := range []string{"file:///etc/passwd", "ftp://x/y", "https://", "https://user:pass@x/", "x"} {
		if out := (&Fetch{}).Run(t.Context(), call(&fakeHost{}, "/", params{"url": bad})).Output; !out.Failed || !strings.Contains(out.Output, "http or https") {
			t.Errorf("%s: %+v", bad, out)
		}
	}
}

// Without a network the user is asked, and what is allowed is the public web.
func TestFetchAsks(t *testing.T) {
	base := pages(t)
	confine := func(a protocol.ApprovalPolicy) Call {
		return confined(&fakeHost{}, t.TempDir(), a, protocol.SandboxReadOnly, params{"url": base + "/html"})
	}
	f := &Fetch{}
	if res := f.Run(t.Context(), confine(protocol.ApprovalOnRequest)); res.Ask == nil || res.Ask.Command[2] != base+"/html" {
		t.Errorf("on-request: %+v", res)
	}
	for _, f := range []*Fetch{{}, {NoEscalation: true}} {
		approval := protocol.ApprovalNever
		if f.NoEscalation {
			approval = protocol.ApprovalOnRequest
		}
		if res := f.Run(t.Context(), confine(approval)); res.Ask != nil || !res.Output.Failed {
			t.Errorf("%+v: %+v", f, res)
		}
	}
	c := confine(protocol.ApprovalOnRequest)
	c.Grant = protocol.Approved
	if res := f.Run(t.Context(), c); !res.Output.Failed || !strings.Contains(res.Output.Output, "on this machine") {
		t.Errorf("an address of this machine: %+v", res.Output)
	}
	c = call(&fakeHost{}, "/", params{"url": base + "/html"})
	c.Settings.Approval = protocol.ApprovalUntrusted
	if res := f.Run(t.Context(), c); res.Ask == nil {
		t.Errorf("untrusted: %+v", res)
	}
}

// A page that does not come is given up when the turn is stopped.
func TestFetchStops(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	// stopped is a context that ends when the request has been written which was made with it.
	stopped := func() context.Context {
		ctx, stop := context.WithCancel(t.Context())
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { stop() }})
	}
	if out := (&Fetch{}).Run(stopped(), call(&fakeHost{}, t.TempDir(), params{"url": s.URL})).Output; !out.Aborted {
		t.Errorf("%+v", out)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(stopped(), u, true); !errors.Is(err, context.Canceled) { // and not when its own time is up
		t.Errorf("fetch: %v", err)
	}
}
