// Package oauthtest is a small service that wants people to log in: an MCP server, and the authorization
// server that it trusts.
package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Service is one that runs. Its fields are set before it is used.
type Service struct {
	URL  string        // of the MCP server
	Life time.Duration // of the tokens that it gives next

	// Redirect changes where the browser is sent when the person has agreed; nil leaves it.
	Redirect func(back *url.URL, query url.Values)

	mu        sync.Mutex
	codes     map[string]url.Values // the query of the login, by code
	access    map[string]time.Time  // until when a token is good
	refresh   map[string]bool       // tokens that are good
	Refreshes int                   // how often a token was renewed
	Misused   int                   // how often a token was used to renew that was used before
	Scopes    string                // of the latest login
	scope     string                // that calls need besides; empty: none
}

// New starts a service. It ends with the test.
func New(t testing.TB, server func() *sdk.Server) *Service {
	t.Helper()
	s := &Service{Life: time.Hour, codes: map[string]url.Values{}, access: map[string]time.Time{}, refresh: map[string]bool{}}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections) // before Close, which waits for them
	s.URL = web.URL + "/mcp"
	mux.Handle("/.well-known/oauth-protected-resource", auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: s.URL, AuthorizationServers: []string{web.URL}, ScopesSupported: []string{"read"},
	}))
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{
			"issuer": web.URL, "authorization_endpoint": web.URL + "/authorize", "token_endpoint": web.URL + "/token",
			"registration_endpoint": web.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		in["client_id"], in["token_endpoint_auth_method"] = "client-"+rand.Text(), "none"
		reply(w, http.StatusCreated, in)
	})
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	protect := auth.RequireBearerToken(s.verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: web.URL + "/.well-known/oauth-protected-resource"})
	mux.Handle("/mcp", protect(s.checkScope(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server() }, nil))))
	return s
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// authorize is the page where the person agrees, which is done at once.
func (s *Service) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || query.Get("code_challenge_method") != "S256" || query.Get("resource") != s.URL {
		http.Error(w, "wrong request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.mu.Lock()
	s.codes[code], s.Scopes = query, query.Get("scope")
	s.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {query.Get("state")}}
	if s.Redirect != nil {
		s.Redirect(back, answer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PostForm.Get("resource") != s.URL || !s.granted(r.PostForm) {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.access[access], s.refresh[refresh] = time.Now().Add(time.Hour), true
	reply(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(s.Life.Seconds()), "refresh_token": refresh})
}

// granted reports whether a token is to be given. A token to renew is good once: its second use ends all.
func (s *Service) granted(form url.Values) bool {
	switch form.Get("grant_type") {
	case "authorization_code":
		query, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		return ok && base64.RawURLEncoding.EncodeToString(sum[:]) == query.Get("code_challenge")
	case "refresh_token":
		good, known := s.refresh[form.Get("refresh_token")]
		if !good {
			if known {
				s.Misused++
				clear(s.access)
				clear(s.refresh)
			}
			return false
		}
		s.refresh[form.Get("refresh_token")] = false
		s.Refreshes++
		return true
	}
	return false
}

func (s *Service) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.access[token]
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{Expiration: until, UserID: "me"}, nil
}

// checkScope answers calls that need a scope that the latest login did not ask for.
func (s *Service) checkScope(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		lacks := s.scope != "" && strings.Contains(string(body), `"tools/call"`) && !strings.Contains(" "+s.Scopes+" ", " "+s.scope+" ")
		s.mu.Unlock()
		if lacks {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+s.scope+`"`)
			http.Error(w, "insufficient scope", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Need makes calls need a scope.
func (s *Service) Need(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scope = scope
}

// Revoke makes the tokens that were given useless, those to renew them as well if all is true.
func (s *Service) Revoke(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if all {
		clear(s.refresh)
	}
}

// Counts returns Refreshes and Misused.
func (s *Service) Counts() (refreshes, misused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Refreshes, s.Misused
}

// Browse does what a browser does with the address of a login, and returns what it shows at the end.
func Browse(address string) (status int, page string, err error) {
	resp, err := http.Get(address)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
