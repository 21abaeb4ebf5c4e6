package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/fermata-agent/fermata/internal/config"
)

// Logins save what services gave for the logins of the person, where no command can read it. The
// methods may be called by any goroutine.
type Logins interface {
	// Load returns what is saved for the server of that name and address, empty if nothing is.
	Load(name, url string) (string, error)
	// Update replaces it by what decide makes of it; empty deletes it. Meanwhile no other process can
	// do the same. It waits for one that does until ctx ends.
	Update(ctx context.Context, name, url string, decide func(saved string) string) error
}

// A login is what a service gave. It is saved as JSON.
type login struct {
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style,omitempty"`
	Resource     string           `json:"resource,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"`
	Wanted       []string         `json:"wanted,omitempty"` // scopes that a call needed, for the next login
	Token        *oauth2.Token    `json:"token"`
}

func parseLogin(text string) *login {
	l := &login{}
	if text == "" || json.Unmarshal([]byte(text), l) != nil || l.Token == nil {
		return nil
	}
	return l
}

func (l *login) text() string {
	text, _ := json.Marshal(l) // strings and a time: cannot fail
	return string(text)
}

// A LoginError says that the person has to log in, and how.
type LoginError struct {
	Server string
	Why    string
}

func (e *LoginError) Error() string { return e.Why + ": run fermata mcp login " + e.Server }

// The states of a login.
const (
	LoginNone    = "not logged in"
	LoginSaved   = "logged in"
	LoginExpired = "login expired"
	LoginToken   = "token of its own" // the definition has one
)

// LoginState is whether the person is logged in to a server. It is empty for a program, which needs none.
func LoginState(name string, def config.MCPServer, logins Logins) (string, error) {
	switch {
	case def.URL == "":
		return "", nil
	case hasToken(def):
		return LoginToken, nil
	case logins == nil:
		return LoginNone, nil
	}
	text, err := logins.Load(name, def.URL)
	l := parseLogin(text)
	switch {
	case err != nil:
		return "", err
	case l == nil:
		return LoginNone, nil
	case !l.Token.Valid() && l.Token.RefreshToken == "":
		return LoginExpired, nil
	}
	return LoginSaved, nil
}

// An authorizer gives the requests to a service the token of the person's login, and renews it. It
// never begins a login: that needs the person.
type authorizer struct {
	name   string
	url    string
	logins Logins
	client *http.Client
	login  atomic.Pointer[login] // the latest; nil if none is known
}

// TokenSource returns what gives the token: none if there is no login.
func (a *authorizer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return tokenSource{ctx, a}, nil
}

type tokenSource struct {
	ctx  context.Context // of the connection
	from *authorizer
}

func (s tokenSource) Token() (*oauth2.Token, error) {
	a := s.from
	l := a.login.Load()
	if l == nil {
		text, err := a.logins.Load(a.name, a.url)
		if l = parseLogin(text); l == nil || err != nil {
			return nil, err
		}
		a.login.Store(l)
	}
	if l.Token.Valid() {
		return l.Token, nil
	}
	if err := a.renew(s.ctx, l.Token.AccessToken); err != nil {
		return nil, err
	}
	return a.login.Load().Token, nil
}

// Authorize is called when the service refused a request. Nil makes it be sent again.
func (a *authorizer) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if resp.StatusCode == http.StatusForbidden {
		return a.forbidden(ctx, challenges)
	}
	used := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if used != "" {
		return a.renew(ctx, used)
	}
	text, err := a.logins.Load(a.name, a.url) // the user may have logged in since
	if l := parseLogin(text); l != nil {
		a.login.Store(l)
		return nil
	}
	return cmp.Or(err, error(&LoginError{a.name, "it wants to know who you are"}))
}

// forbidden notes which scopes a login lacks.
func (a *authorizer) forbidden(ctx context.Context, challenges []oauthex.Challenge) error {
	i := slices.IndexFunc(challenges, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" })
	if i < 0 {
		return nil // the answer to the request says what is wrong
	}
	scope := challenges[i].Params["scope"]
	err := a.logins.Update(ctx, a.name, a.url, func(saved string) string {
		l := parseLogin(saved)
		if l == nil {
			return saved
		}
		l.Wanted = strings.Fields(scope)
		return l.text()
	})
	return cmp.Or(err, error(&LoginError{a.name, fmt.Sprintf("your login does not allow that (it needs %s)", cmp.Or(scope, "more"))}))
}

// renew replaces a token that is no longer good, unless another process has just done so.
func (a *authorizer) renew(ctx context.Context, stale string) error {
	var failed error
	err := a.logins.Update(ctx, a.name, a.url, func(saved string) string {
		l := parseLogin(saved)
		switch {
		case l == nil:
			a.login.Store(nil)
			failed = &LoginError{a.name, "you are not logged in"}
			return saved
		case l.Token.AccessToken != stale && l.Token.Valid():
			a.login.Store(l)
			return saved
		}
		if failed = a.refresh(ctx, l); failed == nil {
			a.login.Store(l)
		}
		return l.text()
	})
	return cmp.Or(failed, err)
}

// refresh changes the token of a login. One that the service does not take any more is forgotten.
func (a *authorizer) refresh(ctx context.Context, l *login) error {
	expired := &LoginError{a.name, "your login has expired"}
	if l.Token.RefreshToken == "" {
		l.Token = &oauth2.Token{Expiry: time.Unix(0, 0)}
		return expired
	}
	cfg := oauth2.Config{ClientID: l.ClientID, ClientSecret: l.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: l.AuthStyle}}
	client := *a.client
	client.Transport = withResource{cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), l.Resource}
	token, err := cfg.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &client), &oauth2.Token{RefreshToken: l.Token.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < 500 && refused.Response.StatusCode != http.StatusTooManyRequests:
		l.Token = &oauth2.Token{Expiry: time.Unix(0, 0)}
		return expired
	case err != nil:
		return fmt.Errorf("renew your login: %w", err)
	}
	l.Token = token
	return nil
}

// withResource says for which service a token is meant, as the protocol demands.
type withResource struct {
	http.RoundTripper
	resource string
}

func (w withResource) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.resource == "" || r.Body == nil {
		return w.RoundTripper.RoundTrip(r)
	}
	form, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	text := string(form) + "&resource=" + url.QueryEscape(w.resource)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return w.RoundTripper.RoundTrip(r)
}
