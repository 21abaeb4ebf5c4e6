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
	pl := newPlace(t)
	pr := pl.start("web", "--no-open", "--demo")
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
