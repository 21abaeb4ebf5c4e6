package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp/callback"
)

// LoginOptions are how a person logs in to a service.
type LoginOptions struct {
	Show   func(address string) // shows the address of the login to the person, in a browser if possible
	Pasted <-chan string        // addresses that the person got to, if the browser cannot reach this machine; may be nil

	Port         int      // of this machine, for the answer of the browser; 0: any
	ClientID     string   // by which the service knows fermata; empty: fermata registers itself
	ClientSecret string   // that belongs to it; may be empty
	Scopes       []string // wanted besides those that the service names
}

// ErrNoLoginNeeded says that a service answers without a login.
var ErrNoLoginNeeded = errors.New("it needs no login")

// loginRequests is how long a request to a service may take during a login.
const loginRequests = 30 * time.Second

// Login lets the person log in to a service, tries the login, and saves it. It waits for the person
// until ctx ends.
func Login(ctx context.Context, name string, def config.MCPServer, o Options, how LoginOptions) error {
	if def.URL == "" {
		return errors.New("it is a program: only services with a url have a login")
	}
	if hasToken(def) {
		return errors.New("its definition has a token (bearer_token_env_var or a header): remove that to log in")
	}
	back, err := callback.Listen(how.Port)
	if err != nil {
		return err
	}
	defer back.Close(ctx)
	text, err := o.Logins.Load(name, def.URL)
	if err != nil {
		return err
	}
	flow := &loginFlow{how: how, back: back, wanted: how.Scopes}
	if old := parseLogin(text); old != nil {
		flow.wanted = slices.Concat(how.Scopes, old.Scopes, old.Wanted)
	}
	if err := flow.connect(ctx, newServer(name, def, o)); err != nil {
		return err
	}
	if flow.got == nil {
		return ErrNoLoginNeeded
	}
	return o.Logins.Update(ctx, name, def.URL, func(string) string { return flow.got.text() })
}

// A loginFlow is one login.
type loginFlow struct {
	how      LoginOptions
	back     *callback.Server
	wanted   []string // scopes
	resource string   // that the login is for
	got      *login
}

// connect connects to the service, which lets the person log in when the service wants that.
func (f *loginFlow) connect(ctx context.Context, s *server) error {
	handler, err := auth.NewAuthorizationCodeHandler(f.config())
	if err != nil {
		return err
	}
	transport, err := s.httpTransport(func() {})
	if err != nil {
		return err
	}
	transport.OAuthHandler = handler
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: s.opt.Version}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	if err != nil {
		return plain(err)
	}
	defer session.Close()
	if f.got == nil { // some want to know who it is only then
		_, err = session.ListTools(ctx, nil)
	}
	if f.got == nil {
		return nil // whatever is wrong with it, a login does not help
	}
	return err
}

func (f *loginFlow) config() *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: f.back.URL, AuthorizationCodeFetcher: f.ask, RequestRefreshToken: true, NewTokenSource: f.receive,
		ScopeFilter: func(named []string) []string { return union(named, f.wanted) },
		Client:      &http.Client{Timeout: loginRequests},
	}
	if f.how.ClientID == "" {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "fermata", RedirectURIs: []string{f.back.URL}, ResponseTypes: []string{"code"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}}
		return c
	}
	c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: f.how.ClientID}
	if f.how.ClientSecret != "" {
		c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: f.how.ClientSecret}
	}
	return c
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// ask lets the person log in, in a browser, and returns what the service answers to that.
func (f *loginFlow) ask(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	address, err := url.Parse(args.URL)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("the service names an address for its login that no browser can open: %.200q", args.URL)
	}
	query := address.Query()
	f.resource = query.Get("resource")
	f.back.Expect(query.Get("state"))
	f.how.Show(args.URL)
	for {
		select {
		case a := <-f.back.Answers:
			return a.Result, a.Err
		case text := <-f.how.Pasted:
			f.back.Take(text)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// receive takes the token that the service gives for the answer.
func (f *loginFlow) receive(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	f.got = &login{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, AuthStyle: c.Endpoint.AuthStyle,
		Resource: f.resource, Scopes: c.Scopes, Token: t,
	}
	if granted, ok := t.Extra("scope").(string); ok {
		f.got.Scopes = strings.Fields(granted)
	}
	return oauth2.StaticTokenSource(t), nil // one that renews it would use up what is saved
}

// Logout forgets a login. It reports false if there was none.
func Logout(ctx context.Context, name string, def config.MCPServer, logins Logins) (bool, error) {
	if def.URL == "" {
		return false, nil
	}
	found := false
	err := logins.Update(ctx, name, def.URL, func(saved string) string {
		found = saved != ""
		return ""
	})
	return found, err
}
