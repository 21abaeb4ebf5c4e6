package web

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// guard looks at what every request must have: a Host that is ours, so that no name that somebody points at
// this machine gets an answer, and if it says from where it was made, that this is our own page.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if s.o.tls() {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
	own, ok := s.origins[r.Host]
	if !ok {
		refuse(w, http.StatusForbidden, "host", "this server is not known by that name")
		return
	}
	if origin, has := r.Header["Origin"]; has && (len(origin) != 1 || origin[0] != own) {
		refuse(w, http.StatusForbidden, "origin", "requests from other pages are refused")
		return
	}
	if !sameSite(r) {
		refuse(w, http.StatusForbidden, "origin", "requests from other pages are refused")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if h, known := s.mux.Handler(r); known == "" && strings.HasPrefix(r.URL.Path, "/api/") {
		h.ServeHTTP(&problemWriter{w}, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// A problemWriter answers as other errors of the API do where the multiplexer would answer with a line of text:
// an unknown path, or a path that does not know the method.
type problemWriter struct{ http.ResponseWriter }

func (w *problemWriter) WriteHeader(status int) {
	refuse(w.ResponseWriter, status, "not_found", "there is no such request: GET /api/v1/openapi.json lists all")
}

func (w *problemWriter) Write(text []byte) (int, error) { return len(text), nil }

// sameSite reports whether what the browser says of where a request comes from allows it. A person may
// follow a link to the page from anywhere.
func sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.HasPrefix(r.URL.Path, "/api/")
}

// admit lets a request through to its handler if it has the right that this needs.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, to route) {
	if to.right == anyone {
		to.handle(s, w, &request{Request: r})
		return
	}
	session, err := s.check(r)
	switch {
	case errors.Is(err, access.ErrSession):
		s.refuseStranger(w, r)
	case err != nil:
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
	case !s.pace.allow(session.ID):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "rate", "too many requests: wait a second")
	case session.Browser && to.right >= watches && !ownPage(r):
		refuse(w, http.StatusForbidden, "origin", "a browser must say from which page it asks")
	case to.right == writing && session.ReadOnly:
		refuse(w, http.StatusForbidden, "read_only", "this link is for reading only")
	case r.Method == http.MethodPost && !isJSON(r):
		refuse(w, http.StatusUnsupportedMediaType, "content_type", "send application/json")
	default:
		to.handle(s, w, &request{r, session})
	}
}

// ownPage reports whether a browser says that a request comes from our page. That it does not come from another
// one, guard has seen to.
func ownPage(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// check returns the session of a request: by a token in a header, for a browser's session also by its
// cookie. A cookie alone is nobody: it is sent to every server on this host, whatever its port.
func (s *Server) check(r *http.Request) (access.Session, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return access.Session{}, access.ErrSession
	}
	return s.o.Access.Check(token, s.cookie(r))
}

// refuseStranger refuses a request without a valid token, and soon all of those from there.
func (s *Server) refuseStranger(w http.ResponseWriter, r *http.Request) {
	if !s.mayTry(r) {
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusTooManyRequests, "rate", "too many wrong tokens: wait a minute")
		return
	}
	refuse(w, http.StatusForbidden, "token", "a valid token is needed: open a new link (fermata web --link)")
}

// mayTry counts a failed try.
func (s *Server) mayTry(r *http.Request) bool {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return s.wrong.allow(host)
}

// limiters limit how often something happens under each name.
type limiters struct {
	rate  rate.Limit
	burst int

	mu     sync.Mutex
	byName map[string]*rate.Limiter // at most maxLimiters; guarded by mu
}

const maxLimiters = 1000

// allow counts something that happens under a name, and reports whether it may.
func (l *limiters) allow(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil || len(l.byName) >= maxLimiters && l.byName[name] == nil { // many names: begin anew rather than grow
		l.byName = map[string]*rate.Limiter{}
	}
	if l.byName[name] == nil {
		l.byName[name] = rate.NewLimiter(l.rate, l.burst)
	}
	return l.byName[name].Allow()
}

// cookieName differs for servers on different ports, since browsers give a host's cookies to all.
func (s *Server) cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "fermata-" + cmp.Or(port, "0")
}

func (s *Server) cookie(r *http.Request) string {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

func (o Options) tls() bool { return len(o.Origins) > 0 && strings.HasPrefix(o.Origins[0], "https:") }

// hostOf is the Host header of requests to an origin.
func hostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Host
}

func isJSON(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(kind) == "application/json"
}
