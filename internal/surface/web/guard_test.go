package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// browser opens a session as the page does, and returns what its requests have.
func (r *rig) browser(rights access.Rights) (token string, cookie *http.Cookie) {
	r.t.Helper()
	code, err := r.access.NewLink(rights)
	if err != nil {
		r.t.Fatal(err)
	}
	status, text, head := r.do("POST", "/api/v1/login", `{"code":"`+code+`","name":"test"}`, func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Header.Set("Origin", r.http.URL)
	})
	if status != http.StatusOK {
		r.t.Fatalf("login: %d %s", status, text)
	}
	var in loginAnswer
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		r.t.Fatal(err)
	}
	res := http.Response{Header: head}
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "/" {
		r.t.Fatalf("cookies %v", cookies)
	}
	return in.Token, cookies[0]
}

func set(name, value string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set(name, value) }
}
func del(name string) func(*http.Request)  { return func(q *http.Request) { q.Header.Del(name) } }
func host(name string) func(*http.Request) { return func(q *http.Request) { q.Host = name } }

func TestWhoIsLetIn(t *testing.T) {
	r := newRig(t)
	id := string(r.begin("hi"))
	token, cookie := r.browser(access.Everything)
	other, otherCookie := r.browser(access.Everything)
	address := strings.TrimPrefix(r.http.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	ops, view, rename := "/api/v1/conversations/"+id+"/ops", "/api/v1/view", `{"kind":"rename","body":{"title":"x"}}`
	browser := func(q *http.Request) {
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Origin", r.http.URL)
		q.AddCookie(cookie)
	}
	with := func(f ...func(*http.Request)) func(*http.Request) {
		return func(q *http.Request) {
			browser(q)
			for _, f := range f {
				f(q)
			}
		}
	}
	for _, tt := range []struct {
		name, method, path, body string
		set                      func(*http.Request)
		want                     int
	}{
		{"a browser writes", "POST", ops, rename, browser, 200},
		{"a browser reads", "GET", "/api/v1/conversations", "", with(del("Origin")), 200},
		{"a program writes", "POST", ops, rename, nil, 200},
		{"no token", "POST", ops, rename, with(del("Authorization")), 403},
		{"cookie alone reads", "GET", "/api/v1/conversations", "", with(del("Authorization"), del("Origin")), 403},
		{"cookie alone as a token", "POST", ops, rename, with(set("Authorization", "Bearer "+cookie.Value)), 403},
		{"a browser's token without its cookie", "POST", ops, rename, with(del("Cookie")), 403},
		{"another browser's cookie", "POST", ops, rename, with(set("Cookie", otherCookie.String())), 403},
		{"another browser's token", "POST", ops, rename, with(set("Authorization", "Bearer "+other)), 403},
		{"wrong token", "POST", ops, rename, with(set("Authorization", "Bearer x")), 403},
		{"token in another scheme", "POST", ops, rename, with(set("Authorization", "Basic "+token)), 403},
		{"token in the address", "GET", "/api/v1/conversations?token=" + token, "", with(del("Authorization")), 403},
		{"another origin", "POST", ops, rename, with(set("Origin", "https://evil.example")), 403},
		{"another port of this host", "POST", ops, rename, with(set("Origin", "http://127.0.0.1:1")), 403},
		{"no port", "POST", ops, rename, with(set("Origin", "http://127.0.0.1")), 403},
		{"another scheme", "POST", ops, rename, with(set("Origin", "https://"+address)), 403},
		{"another name of this host", "POST", ops, rename, with(set("Origin", "http://localhost:"+port)), 403},
		{"origin null", "POST", ops, rename, with(set("Origin", "null")), 403},
		{"origin of a suffix", "POST", ops, rename, with(set("Origin", r.http.URL+".evil.example")), 403},
		{"no origin", "POST", ops, rename, with(del("Origin")), 403},
		{"a stream without an origin", "POST", view, `{"have":{"cursor":0}}`, with(del("Origin")), 403},
		{"events without an origin", "GET", "/api/v1/conversations/" + id + "/events", "", with(del("Origin")), 403},
		{"cross-site", "GET", "/api/v1/conversations", "", with(del("Origin"), set("Sec-Fetch-Site", "cross-site")), 403},
		{"same site, another port", "GET", "/api/v1/conversations", "", with(del("Origin"), set("Sec-Fetch-Site", "same-site")), 403},
		{"same site, navigation to the API", "GET", "/api/v1/conversations", "", with(del("Origin"), set("Sec-Fetch-Site", "same-site"), set("Sec-Fetch-Mode", "navigate"), set("Sec-Fetch-Dest", "document")), 403},
		{"rebinding", "GET", "/api/v1/conversations", "", with(host("evil.example:"+port), del("Origin")), 403},
		{"rebinding, with its origin", "POST", ops, rename, with(host("evil.example:"+port), set("Origin", "http://evil.example:"+port)), 403},
		{"rebinding, a program's token", "GET", "/api/v1/conversations", "", host("evil.example:" + port), 403},
		{"no port", "GET", "/", "", with(host("127.0.0.1"), del("Origin")), 403},
		{"localhost, if that is not ours", "GET", "/", "", with(host("localhost:"+port), del("Origin")), 403},
		{"preflight", "OPTIONS", ops, "", with(set("Origin", "https://evil.example"), set("Access-Control-Request-Method", "POST")), 403},
		{"a form", "POST", ops, rename, with(set("Content-Type", "text/plain")), 415},
		{"the page in a frame of another site", "GET", "/", "", with(del("Origin"), set("Sec-Fetch-Site", "cross-site"), set("Sec-Fetch-Mode", "navigate"), set("Sec-Fetch-Dest", "iframe")), 403},
		{"a link to the page from another site", "GET", "/", "", with(del("Origin"), set("Sec-Fetch-Site", "cross-site"), set("Sec-Fetch-Mode", "navigate"), set("Sec-Fetch-Dest", "document")), 200},
		{"the page by its cookie", "GET", "/", "", func(q *http.Request) { q.Header.Del("Authorization"); q.AddCookie(cookie) }, 200},
		{"the page without anything", "GET", "/", "", del("Authorization"), 403},
		{"the page with a wrong link", "GET", "/?link=x", "", del("Authorization"), 403},
	} {
		status, text, head := r.do(tt.method, tt.path, tt.body, tt.set)
		if status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, status, text, tt.want)
		}
		for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
			if head.Get(name) != "" {
				t.Errorf("%s: %s is set", tt.name, name)
			}
		}
		if head.Get("X-Frame-Options") != "DENY" || head.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers %v", tt.name, head)
		}
	}
}

func TestReadOnlyLink(t *testing.T) {
	r := newRig(t)
	id := string(r.begin("hi"))
	r.session = r.login(access.ReadOnly)
	for path, want := range map[string]int{
		"POST /api/v1/conversations":                      403,
		"POST /api/v1/conversations/" + id + "/ops":       403,
		"POST /api/v1/conversations/" + id + "/fork":      403,
		"POST /api/v1/conversations/" + id + "/archive":   403,
		"POST /api/v1/conversations/" + id + "/unarchive": 403,
		"POST /api/v1/conversations/" + id + "/undo":      403,
		"GET /api/v1/conversations/" + id:                 200,
		"GET /api/v1/conversations/" + id + "/diff":       200,
		"GET /api/v1/session":                             200,
	} {
		method, at, _ := strings.Cut(path, " ")
		if status, text, _ := r.do(method, at, "{}", nil); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, text, want)
		}
	}
	for _, to := range routes() { // whatever is added later
		if to.right == writing && to.method == "GET" {
			t.Errorf("%s writes by GET", to.path)
		}
	}
}

func TestPathsLeadNowhere(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{
		"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/page/js/base.js", "/api/v1/conversations/..%2f..%2fweb.json", "/api/v1/conversations/%2e%2e/events",
		"/api/v1/conversations/" + strings.Repeat("a", 36) + "/items/..%2f..", "/answer/..%2f..%2fweb.json", "/%00", "/.git/config", "//evil.example/", "/api/v1/conversations/x/diff",
	} {
		q, _ := http.NewRequestWithContext(t.Context(), "GET", r.http.URL, nil)
		q.URL = &url.URL{Scheme: "http", Host: q.URL.Host, Opaque: "//" + q.URL.Host + path}
		q.Header.Set("Authorization", "Bearer "+r.session.Token)
		res, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			continue // not a request
		}
		res.Body.Close()
		if res.StatusCode < 300 || res.StatusCode >= 500 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
		if to := res.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "evil") && !strings.HasPrefix(to, "/evil") {
			t.Errorf("%s: sent to %s", path, to)
		}
	}
}

func TestWrongTokensAreLimited(t *testing.T) {
	r := newRig(t)
	last := 0
	for range wrongBurst + 5 {
		last, _, _ = r.do("GET", "/api/v1/conversations", "", func(q *http.Request) { q.Header.Set("Authorization", "Bearer x") })
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the last try got %d", last)
	}
	if status, text, _ := r.do("GET", "/api/v1/conversations", "", nil); status != http.StatusOK {
		t.Errorf("who has a token is refused, too: %d %s", status, text)
	}
}

func TestRequestsOfASessionAreLimited(t *testing.T) {
	r := newRig(t)
	refused := 0
	for range 3 * requestBurst {
		w := httptest.NewRecorder()
		q := httptest.NewRequest("GET", r.http.URL+"/api/v1/session", nil)
		q.Header.Set("Authorization", "Bearer "+r.session.Token)
		r.server.ServeHTTP(w, q)
		if w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestThePageHoldsNothing(t *testing.T) {
	r := newRig(t)
	r.begin("a secret")
	_, cookie := r.browser(access.Everything)
	status, text, head := r.do("GET", "/", "", func(q *http.Request) { q.Header.Del("Authorization"); q.AddCookie(cookie) })
	if status != http.StatusOK || strings.Contains(text, "secret") || strings.Contains(text, cookie.Value) {
		t.Errorf("%d, %d bytes", status, len(text))
	}
	if len(text) > 150_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	policy := head.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http:") || strings.Contains(policy, "https:") {
		t.Errorf("the policy is weak: %s", policy)
	}
	for _, outside := range []string{"http://", "https://", "//cdn"} {
		if strings.Contains(text, outside) {
			t.Errorf("the page names %s", outside)
		}
	}
}
