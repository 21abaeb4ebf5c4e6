package mcp

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// A callback is the address of this machine that a browser is sent to when the person has logged in.
type callback struct {
	url     string
	answers chan answered // holds one: what comes later is of no use
	state   atomic.Pointer[string]
	server  *http.Server
	done    chan struct{} // closed when the server has ended
}

type answered struct {
	result *auth.AuthorizationResult
	err    error
}

// listen opens the address. The caller calls close.
func listen(port int) (*callback, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	c := &callback{url: fmt.Sprintf("http://%s/callback", l.Addr()), answers: make(chan answered, 1), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", c.serve)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ended by close
		defer close(c.done)
		_ = c.server.Serve(l)
	}()
	return c, nil
}

// closeTime is how long the browser may take to read the last page.
const closeTime = time.Second

func (c *callback) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = c.server.Shutdown(ctx)
	_ = c.server.Close()
	<-c.done
}

// expect says by what the right answer is recognized.
func (c *callback) expect(state string) { c.state.Store(&state) }

// serve takes an answer. Any page in the browser can send one: one that does not belong to this login
// changes nothing.
func (c *callback) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	a, ok := c.check(r.URL.Query())
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(w, "This does not belong to the login that fermata waits for.")
		return
	}
	if a.err != nil {
		fmt.Fprintln(w, "The login was refused. You can close this page.")
	} else {
		fmt.Fprintln(w, "fermata has your login. You can close this page.")
	}
	c.give(a)
}

// take takes an answer that the person has pasted: the address that the browser got to.
func (c *callback) take(text string) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return
	}
	if a, ok := c.check(u.Query()); ok {
		c.give(a)
	}
}

func (c *callback) give(a answered) {
	select {
	case c.answers <- a:
	default: // there is one
	}
}

// check reports whether an answer belongs to the login.
func (c *callback) check(query url.Values) (answered, bool) {
	state := c.state.Load()
	if state == nil || *state == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(*state)) != 1 {
		return answered{}, false
	}
	if code := query.Get("code"); code != "" {
		return answered{result: &auth.AuthorizationResult{Code: code, State: *state, Iss: query.Get("iss")}}, true
	}
	return answered{err: denied(query)}, true
}
