package observe

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/strangers"
)

// A Server serves /metrics and /healthz.
type Server struct {
	Metrics *Registry
	Token   string       // that clients of /metrics show as a bearer token; empty if they need none
	Healthy func() error // why the server is not healthy; nil is always
}

// minToken is the shortest token.
const minToken = 16

// CheckToken returns a token as it is read from a file, or says what is wrong with it.
func CheckToken(text []byte) (string, error) {
	token := strings.TrimSpace(string(text))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("a token has at least %d characters, and no spaces", minToken)
	}
	return token, nil
}

// How many connections there may be, and how long a request may take.
const (
	maxConnections = 32
	requestTime    = 10 * time.Second
)

// Serve serves at a listener until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", s.health)
	h := &http.Server{Handler: mux, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() { // ends with ctx, or with Serve
		select {
		case <-ctx.Done():
			_ = h.Close()
		case <-done:
		}
	}()
	defer close(done)
	err := h.Serve(strangers.Limit(l, maxConnections))
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if !s.isAllowed(r.Header.Get("Authorization")) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = s.Metrics.WriteText(w) // else the client has left
}

func (s *Server) isAllowed(header string) bool {
	if s.Token == "" {
		return true
	}
	token, ok := strings.CutPrefix(header, "Bearer ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok
}

// health needs no token, and says no more than whether: load balancers ask.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.Healthy != nil {
		if err := s.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = io.WriteString(w, "ok\n") // else the client has left
}
