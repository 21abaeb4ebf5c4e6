// Package callback waits for the browser to be sent back when a person has logged in to a service.
package callback

import (
	"cmp"
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

// A Server is the address of this machine that a browser is sent to when the person has logged in.
type Server struct {
	URL     string
	Answers chan Answer // holds one: what comes later is of no use
	state   atomic.Pointer[string]
	server  *http.Server
	done    chan struct{} // closed when the server has ended
}

// An Answer is what the service says to a login.
type Answer struct {
	Result *auth.AuthorizationResult
	Err    error // that it was refused
}

// Listen opens the address, at any port if it is 0. The caller calls Close.
func Listen(port int) (*Server, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	c := &Server{URL: fmt.Sprintf("http://%s/callback", l.Addr()), Answers: make(chan Answer, 1), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", c.serve)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ended by Close
		defer close(c.done)
		_ = c.server.Serve(l)
	}()
	return c, nil
}

// closeTime is how long the browser may take to read the last page.
const closeTime = time.Second

// Close ends the waiting.
func (c *Server) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = c.server.Shutdown(ctx)
	_ = c.server.Close()
	<-c.done
}

// Expect says by what the right answer is recognized.
func (c *Server) Expect(state string) { c.state.Store(&state) }

// serve takes an answer. Any page in the browser can send one: one that does not belong to this login
// changes nothing.
func (c *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	a, ok := c.check(r.URL.Query())
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(w, "This does not belong to the login that fermata waits for.")
		return
	}
	if a.Err != nil {
		fmt.Fprintln(w, "The login was refused. You can close this page.")
	} else {
		fmt.Fprintln(w, "fermata has your login. You can close this page.")
	}
	c.give(a)
}

// Take takes an answer that the person has pasted: the address that the browser got to.
func (c *Server) Take(text string) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return
	}
	if a, ok := c.check(u.Query()); ok {
		c.give(a)
	}
}

func (c *Server) give(a Answer) {
	select {
	case c.Answers <- a:
	default: // there is one
	}
}

// check reports whether an answer belongs to the login.
func (c *Server) check(query url.Values) (Answer, bool) {
	state := c.state.Load()
	if state == nil || *state == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(*state)) != 1 {
		return Answer{}, false
	}
	if code := query.Get("code"); code != "" {
		return Answer{Result: &auth.AuthorizationResult{Code: code, State: *state, Iss: query.Get("iss")}}, true
	}
	return Answer{Err: denied(query)}, true
}

// denied puts what a service answers in place of a code into words.
func denied(query url.Values) error {
	reason := query.Get("error")
	if reason == "access_denied" {
		reason = "you, or the service, did not agree"
	}
	if more := query.Get("error_description"); more != "" {
		reason += ": " + more
	}
	return fmt.Errorf("the login was refused: %s", cmp.Or(reason, "no reason was given"))
}
