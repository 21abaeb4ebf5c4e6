package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/app/keys"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp/message"
	"github.com/fermata-agent/fermata/internal/tool/mcp/oauthtest"
)

// A loginRig is a service that wants a login, and a home where logins are saved.
type loginRig struct {
	t       *testing.T
	service *oauthtest.Service
	home    string
	def     config.MCPServer
}

func newLoginRig(t *testing.T) *loginRig {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "") // no keyring
	t.Setenv("XDG_RUNTIME_DIR", "")
	service := oauthtest.New(t, newTestServer)
	return &loginRig{t, service, t.TempDir(), config.MCPServer{URL: service.URL, StartupTimeout: 5 * time.Minute}}
}

func (r *loginRig) logins() Logins { return keys.OpenLogins(r.home) }

// login logs in, with a person who does as the service says.
func (r *loginRig) login(show func(address string)) error {
	r.t.Helper()
	if show == nil {
		show = func(address string) {
			go func() {
				if status, page, err := oauthtest.Browse(address); status != http.StatusOK || err != nil {
					r.t.Errorf("the browser shows %d %s, %v", status, page, err)
				}
			}()
		}
	}
	return Login(r.t.Context(), "s", r.def, Options{Logins: r.logins(), Version: "test"}, LoginOptions{Show: show})
}

// open opens the server as another process would.
func (r *loginRig) open() *rig {
	r.t.Helper()
	all := openIn(r.t, r.t.TempDir(), "", map[string]config.MCPServer{})
	all.Servers = Open(r.t.Context(), map[string]config.MCPServer{"s": r.def}, Options{Logins: r.logins(), Version: "test"})
	r.t.Cleanup(all.Servers.Close)
	return all
}

func (r *loginRig) state() string {
	r.t.Helper()
	state, err := LoginState("s", r.def, r.logins())
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

func TestLogin(t *testing.T) {
	r := newLoginRig(t)
	s := r.open().Check(t.Context(), nil)[0]
	if s.State != Failed || s.Error != "it wants to know who you are: run fermata mcp login s" || r.state() != LoginNone {
		t.Errorf("before: %+v, %s", s, r.state())
	}
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	all := r.open()
	s = all.Check(t.Context(), nil)[0]
	if s.State != Running || s.Login != LoginSaved || r.state() != LoginSaved || !strings.Contains(Describe([]Status{s}), "running, test 1, logged in") {
		t.Errorf("after: %+v, %s", s, r.state())
	}
	if res := all.call(t.Context(), t, "s__echo", `{"text":"hello"}`); res.Output.Output != "hello" {
		t.Errorf("%+v", res.Output)
	}
	r.private()

	if found, err := Logout(t.Context(), "s", r.def, r.logins()); !found || err != nil || r.state() != LoginNone {
		t.Errorf("logout: %t, %v, then %s", found, err, r.state())
	}
	if found, err := Logout(t.Context(), "s", r.def, r.logins()); found || err != nil {
		t.Errorf("again: %t, %v", found, err)
	}
	if s := r.open().Check(t.Context(), nil)[0]; !strings.Contains(s.Error, "run fermata mcp login s") {
		t.Errorf("%+v", s)
	}
}

// private checks that only the person can read what was saved.
func (r *loginRig) private() {
	r.t.Helper()
	found := 0
	_ = filepath.WalkDir(filepath.Join(r.home, "keys"), func(path string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		if info.Mode().Perm()&0o077 != 0 {
			r.t.Errorf("%s: %v", path, info.Mode())
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "access-") {
			found++
		}
		return nil
	})
	if found != 1 {
		r.t.Errorf("%d files have the token", found)
	}
}

// Any page can send the browser to the address that fermata waits at.
func TestLoginWithAWrongState(t *testing.T) {
	r := newLoginRig(t)
	err := r.login(func(address string) {
		go func() {
			u, _ := url.Parse(address)
			back := u.Query().Get("redirect_uri")
			for _, query := range []string{"?code=evil&state=evil", "?code=evil", "?error=access_denied&state=", ""} {
				if status, _, err := oauthtest.Browse(back + query); status != http.StatusBadRequest || err != nil {
					t.Errorf("%s: %d, %v", query, status, err)
				}
			}
			_, _, _ = oauthtest.Browse(address) // the right one
		}()
	})
	if err != nil || r.state() != LoginSaved {
		t.Errorf("%v, %s", err, r.state())
	}
}

func TestLoginThatIsRefused(t *testing.T) {
	r := newLoginRig(t)
	r.service.Redirect = func(_ *url.URL, query url.Values) {
		query.Del("code")
		query.Set("error", "access_denied")
		query.Set("error_description", "not today")
	}
	err := r.login(nil)
	if err == nil || err.Error() != "the login was refused: you, or the service, did not agree: not today" || r.state() != LoginNone {
		t.Errorf("%v, %s", err, r.state())
	}
	r.service.Redirect = func(_ *url.URL, query url.Values) { query.Set("code", "made up") }
	if err := r.login(nil); err == nil || r.state() != LoginNone {
		t.Errorf("a made-up code: %v, %s", err, r.state())
	}
}

func TestLoginThatIsGivenUp(t *testing.T) {
	r := newLoginRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("interrupted")
	err := Login(ctx, "s", r.def, Options{Logins: r.logins()}, LoginOptions{Show: func(string) { cancel(gone) }})
	if !errors.Is(err, gone) || r.state() != LoginNone {
		t.Errorf("%v, %s", err, r.state())
	}
}

// The browser may be on another machine: the person pastes the address that it could not open.
func TestLoginByPasting(t *testing.T) {
	r := newLoginRig(t)
	pasted := make(chan string, 3)
	show := func(address string) {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		pasted <- "what?"
		pasted <- "http://127.0.0.1/callback?code=evil&state=evil"
		pasted <- " " + resp.Header.Get("Location") + "\n"
	}
	err := Login(t.Context(), "s", r.def, Options{Logins: r.logins()}, LoginOptions{Show: show, Pasted: pasted})
	if err != nil || r.state() != LoginSaved {
		t.Errorf("%v, %s", err, r.state())
	}
}

func TestATokenIsRenewed(t *testing.T) {
	r := newLoginRig(t)
	r.service.Life = time.Second // which is over for a client that is careful
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	r.service.Life = time.Hour
	before, _ := r.service.Counts()
	all := r.open()
	if s := all.Check(t.Context(), nil)[0]; s.State != Running {
		t.Fatalf("%+v", s)
	}
	if n, _ := r.service.Counts(); n != before+1 {
		t.Errorf("renewed %d times", n-before)
	}
	r.service.Revoke(false) // it ends before its time
	if res := all.call(t.Context(), t, "s__echo", `{"text":"again"}`); res.Output.Output != "again" {
		t.Errorf("%+v", res.Output)
	}
	if n, _ := r.service.Counts(); n != before+2 {
		t.Errorf("renewed %d times", n-before)
	}

	r.service.Revoke(true)
	res := all.call(t.Context(), t, "s__echo", `{"text":"again"}`)
	if !res.Output.Failed || res.Output.Output != "the MCP server s cannot be called: your login has expired: run fermata mcp login s" || r.state() != LoginExpired {
		t.Errorf("%+v, %s", res.Output, r.state())
	}
	if s := r.open().Check(t.Context(), nil)[0]; s.Error != "your login has expired: run fermata mcp login s" {
		t.Errorf("%+v", s)
	}
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	if res := all.call(t.Context(), t, "s__echo", `{"text":"back"}`); res.Output.Output != "back" {
		t.Errorf("a process that was running does not use the new login: %+v", res.Output)
	}
}

// TestTwoProcessesRenewAToken: the second use of what renews one would end the login.
func TestTwoProcessesRenewAToken(t *testing.T) {
	r := newLoginRig(t)
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	processes := []*rig{r.open(), r.open(), r.open(), r.open()}
	for _, all := range processes {
		if s := all.Check(t.Context(), nil)[0]; s.State != Running {
			t.Fatalf("%+v", s)
		}
	}
	r.service.Revoke(false)
	var wait sync.WaitGroup
	for _, all := range processes {
		wait.Go(func() {
			if res := all.call(t.Context(), t, "s__echo", `{"text":"one of many"}`); res.Output.Output != "one of many" {
				t.Errorf("%+v", res.Output)
			}
		})
	}
	wait.Wait()
	if n, misused := r.service.Counts(); n != 1 || misused != 0 {
		t.Errorf("renewed %d times, misused %d times", n, misused)
	}
}

func TestALoginThatIsNotEnough(t *testing.T) {
	r := newLoginRig(t)
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	r.service.Need("write")
	all := r.open()
	all.Check(t.Context(), nil)
	res := all.call(t.Context(), t, "s__echo", `{"text":"x"}`)
	if !strings.Contains(res.Output.Output, "your login does not allow that (it needs write): run fermata mcp login s") {
		t.Errorf("%+v", res.Output)
	}
	if err := r.login(nil); err != nil || !strings.Contains(r.service.Scopes, "read") || !strings.Contains(r.service.Scopes, "write") {
		t.Errorf("%v, asked for %q", err, r.service.Scopes)
	}
	if res := all.call(t.Context(), t, "s__echo", `{"text":"x"}`); res.Output.Output != "x" {
		t.Errorf("%+v", res.Output)
	}
}

func TestALoginBelongsToOneAddress(t *testing.T) {
	r := newLoginRig(t)
	if err := r.login(nil); err != nil {
		t.Fatal(err)
	}
	other := r.def
	other.URL = "https://elsewhere.example/mcp"
	if state, err := LoginState("s", other, r.logins()); state != LoginNone || err != nil {
		t.Errorf("%s, %v", state, err)
	}
	for want, def := range map[string]config.MCPServer{
		"it is a program":             {Command: "x"},
		"its definition has a token":  {URL: r.def.URL, BearerTokenEnvVar: "X"},
		"its definition has a token ": {URL: r.def.URL, HTTPHeaders: map[string]config.Secret{"authorization": config.NewSecret("x")}},
	} {
		if err := Login(t.Context(), "s", def, Options{Logins: r.logins()}, LoginOptions{}); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestHeadersStayWithTheirService: they may be secrets.
func TestHeadersStayWithTheirService(t *testing.T) {
	h := headers{http.Header{"X-Key": {"secret"}}, "https://good.example", message.DefaultBounds, nil}
	for address, want := range map[string]string{"https://good.example/a": "secret", "http://good.example/a": "", "https://good.example:8/a": "", "https://evil.example/": ""} {
		seen := ""
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if r := h.with(req); r != nil {
			seen = r.Header.Get("X-Key")
		}
		if seen != want {
			t.Errorf("%s gets %q, want %q", address, seen, want)
		}
	}
}
