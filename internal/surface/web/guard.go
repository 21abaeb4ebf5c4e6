package web

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
)

// guard looks at what every request must have: a Host that is ours, so that no name that another site points at
// this machine gets an answer, and if it says from where it was made, that this is our own page.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	setTime(w, strangerTime) // until it is known whose it is
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
	if c, err := proof.Parse(r.Header.Get(proof.Header)); err == nil { // whoever is refused knows by whom
		head.Set(proof.AnswerHeader, s.key.Answer(c.ID, own))
	}
	if h, known := s.mux.Handler(r); known == "" && strings.HasPrefix(r.URL.Path, "/api/") {
		h.ServeHTTP(&problemWriter{w}, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// setTime sets how long the rest of a request may take to arrive. One that was refused is not waited for any longer either.
func setTime(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) // of a connection; tests have none
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
		r.Body = http.MaxBytesReader(w, r.Body, strangerBody)
		to.handle(s, w, &request{Request: r})
		return
	}
	q := &request{Request: r}
	err := s.identify(q)
	switch {
	case errors.Is(err, access.ErrSession):
		s.refuseStranger(w, r)
	case err != nil:
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
	case !s.pace.allow(q.session.ID):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "rate", "too many requests: wait a second")
	case !s.known(q):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusServiceUnavailable, "connections", "this session has too many connections")
	case q.session.Browser() && to.right >= watches && !ownPage(r):
		refuse(w, http.StatusForbidden, "origin", "a browser must say from which page it asks")
	case to.right == writing && q.session.ReadOnly:
		refuse(w, http.StatusForbidden, "read_only", "this link is for reading only")
	case r.Method == http.MethodPost && !isJSON(r):
		refuse(w, http.StatusUnsupportedMediaType, "content_type", "send application/json")
	default:
		if s.checkProof(w, q) {
			to.handle(s, w, q)
		}
	}
}

// ownPage reports whether a browser says that a request comes from our page. That it does not come from another
// one, guard has seen to.
func ownPage(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// identify finds the session of a request: a program's by its token, a browser's by its signature.
func (s *Server) identify(r *request) (err error) {
	header := r.Header.Get(proof.Header)
	if header == "" {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return access.ErrSession
		}
		r.session, err = s.o.Access.ByToken(token)
		return err
	}
	if r.claim, err = proof.Parse(header); err != nil {
		return access.ErrSession
	}
	if r.session, err = s.o.Access.ByID(r.claim.Session); err != nil {
		return err
	}
	if !r.session.Browser() || !r.claim.SignedBy(r.session.Key) {
		return access.ErrSession
	}
	if r.session.Origin != s.origins[r.Host] { // it logged in at another port or name
		return access.ErrSession
	}
	return nil
}

// checkProof reads the body of a request that a browser has signed, and reports whether the claim is for this request and has
// not been used before. It answers by itself if not.
func (s *Server) checkProof(w http.ResponseWriter, r *request) bool {
	setTime(w, requestTime)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if !r.session.Browser() {
		return true
	}
	return s.readClaimed(w, r, s.fresh.Take)
}

// readClaimed reads the body of a request and checks its claim.
func (s *Server) readClaimed(w http.ResponseWriter, r *request, take func(proof.Claim, time.Time) error) bool {
	data, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "body", "read the request: "+err.Error())
		return false
	case r.claim.Method != r.Method || r.claim.URL != s.origins[r.Host]+r.URL.RequestURI() || !r.claim.Has(data):
		refuse(w, http.StatusForbidden, "proof", "the proof is for another request")
		return false
	}
	if err := take(r.claim, time.Now()); err != nil {
		refuse(w, http.StatusForbidden, "proof", err.Error())
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return true
}

// hello shows who the server is, before a page sends it anything.
func (s *Server) hello(w http.ResponseWriter, r *request) {
	challenge := r.URL.Query().Get("challenge")
	if len(challenge) < minChallenge || len(challenge) > maxChallenge {
		refuse(w, http.StatusBadRequest, "field", "challenge must be a random text")
		return
	}
	answer(w, http.StatusOK, s.key.Hello(challenge, s.origins[r.Host], s.fresh.Nonce, time.Now().Unix()))
}

// The length of a challenge, to which no answer can be prepared.
const (
	minChallenge = 22
	maxChallenge = 64
)

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
