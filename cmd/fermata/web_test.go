package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// The link opens a session once, a program runs a turn by the API, and a signal ends the server well.
func TestWebServes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"web", "--no-open", "--demo"}, {"serve", "--http", "127.0.0.1:0", "--demo"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			testWeb(t, args)
		})
	}
}

// What makes no sense without the page is refused; links can be made, listed and revoked by another process.
func TestServeLinks(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	for _, args := range [][]string{{"serve", "--tls-cert", "x"}, {"serve", "127.0.0.1:1"}, {"serve", "--http=127.0.0.1:1", "127.0.0.1:2"}} {
		if _, errs, code := pl.run(args...); code != exitUsage {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
	if _, errs, code := pl.run("serve", "--link"); code != exitFailed || !strings.Contains(errs, "has not been served") {
		t.Errorf("a link to nothing: exit code %d, %s", code, errs)
	}
	pr := pl.start("serve", "--http", "--demo")
	eventually(t, "the link is printed", func() bool { return strings.HasSuffix(pr.out.String(), "\n") })
	if link := pl.must("serve", "--link", "--read-only"); !strings.Contains(link, "/?link=") {
		t.Errorf("link %q", link)
	}
	if list := pl.must("serve", "--list"); strings.Count(list, "link") != 2 || !strings.Contains(list, "read-only") {
		t.Errorf("list:\n%s", list)
	}
	pl.must("serve", "--revoke", "all")
	if list := pl.must("serve", "--list"); list != "" {
		t.Errorf("after revoking:\n%s", list)
	}
	pr.signal(syscall.SIGTERM)
	if code := pr.code(); code != exitOK {
		t.Errorf("exit code %d: %s", code, pr.err.String())
	}
}

func testWeb(t *testing.T, args []string) {
	t.Helper()
	pl := newPlace(t)
	pr := pl.start(args...)
	eventually(t, "the link is printed", func() bool { return strings.HasSuffix(pr.out.String(), "\n") })
	origin, code, ok := strings.Cut(strings.TrimSpace(pr.out.String()), "/?link=")
	if !ok || !strings.HasPrefix(origin, "http://127.0.0.1:") {
		t.Fatalf("link %q", pr.out.String())
	}
	api := func(method, path, token, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, origin+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	status, text := api("POST", "/login", "", `{"code":"`+code+`"}`)
	var in struct{ Token string }
	if err := json.Unmarshal([]byte(text), &in); status != http.StatusOK || err != nil {
		t.Fatalf("login: %d %s", status, text)
	}
	if status, text := api("POST", "/login", "", `{"code":"`+code+`"}`); status != http.StatusForbidden {
		t.Errorf("a second login: %d %s", status, text)
	}
	status, text = api("POST", "/conversations", in.Token, `{"prompt":"talk 3"}`)
	var c struct{ ID string }
	if err := json.Unmarshal([]byte(text), &c); status != http.StatusCreated || err != nil {
		t.Fatalf("create: %d %s", status, text)
	}
	if status, text := api("POST", "/conversations", in.Token, `{"prompt":"talk 3","cwd":"/nowhere"}`); status != http.StatusBadRequest || !strings.Contains(text, "is not a directory") {
		t.Errorf("a directory that is not there: %d %s", status, text)
	}
	eventually(t, "the turn completes", func() bool {
		_, text := api("GET", "/conversations/"+c.ID, in.Token, "")
		return strings.Contains(text, `"ended":"completed"`)
	})
	if status, _ := api("GET", "/conversations", "x", ""); status != http.StatusForbidden {
		t.Errorf("a wrong token: %d", status)
	}
	pr.signal(syscall.SIGTERM)
	if code := pr.code(); code != exitOK {
		t.Errorf("exit code %d: %s", code, pr.err.String())
	}
}
