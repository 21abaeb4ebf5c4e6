package web

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
)

// A browser is a session with a key, as a page has one.
type browser struct {
	r       *rig
	key     proof.Key
	session string
}

// browser opens a session as the page does.
func (r *rig) browser(rights access.Rights) *browser {
	r.t.Helper()
	code, err := r.access.NewLink(rights)
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := proof.NewKey()
	if err != nil {
		r.t.Fatal(err)
	}
	b := &browser{r: r, key: key}
	body := `{"code":"` + code + `","name":"test","key":"` + key.Public() + `"}`
	status, text, head := r.do("POST", "/api/v1/login", body, b.sign)
	if status != http.StatusOK {
		r.t.Fatalf("login: %d %s", status, text)
	}
	var in loginAnswer
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		r.t.Fatal(err)
	}
	if in.Token != "" || head.Get("Set-Cookie") != "" {
		r.t.Fatalf("a browser was given a secret: %s %v", text, head)
	}
	b.session = in.Session.ID
	return b
}

// claim is that of a request as it is now.
func (b *browser) claim(q *http.Request) proof.Claim {
	return proof.Claim{
		Session: b.session, Method: q.Method, URL: b.r.http.URL + q.URL.RequestURI(), Time: time.Now().Unix(), ID: rand.Text(), Nonce: b.r.server.fresh.Nonce,
	}
}

// sign makes a request one of the page.
func (b *browser) sign(q *http.Request) { b.signAs(q, func(*proof.Claim) {}) }

// signAs signs a request with a claim that is changed before.
func (b *browser) signAs(q *http.Request, change func(*proof.Claim)) {
	q.Header.Del("Authorization")
	q.Header.Set("Origin", b.r.http.URL)
	c := b.claim(q)
	change(&c)
	q.Header.Set(proof.Header, b.key.Claim(c, bodyOf(b.r.t, q)))
}

func bodyOf(t *testing.T, q *http.Request) []byte {
	t.Helper()
	body, err := q.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func set(name, value string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set(name, value) }
}
func del(name string) func(*http.Request)  { return func(q *http.Request) { q.Header.Del(name) } }
func host(name string) func(*http.Request) { return func(q *http.Request) { q.Host = name } }

func TestWhoIsLetIn(t *testing.T) {
	r := newRig(t)
	id := string(r.begin("hi"))
	page := r.browser(access.Everything)
	address := strings.TrimPrefix(r.http.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	ops, view, rename := "/api/v1/conversations/"+id+"/ops", "/api/v1/view", `{"kind":"rename","body":{"title":"x"}}`
	browser := page.sign
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
		{"wrong token", "POST", ops, rename, set("Authorization", "Bearer x"), 403},
		{"token in another scheme", "POST", ops, rename, set("Authorization", "Basic "+r.session.Token), 403},
		{"token in the address", "GET", "/api/v1/conversations?token=" + r.session.Token, "", del("Authorization"), 403},
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
		{"the page without anything", "GET", "/", "", del("Authorization"), 200},
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

// A browser signs each request, and each once.
func TestProofsOfABrowser(t *testing.T) {
	r := newRig(t)
	page, other := r.browser(access.Everything), r.browser(access.Everything)
	ops, rename := "/api/v1/conversations/"+string(r.begin("hi"))+"/ops", `{"kind":"rename","body":{"title":"x"}}`
	browser := page.sign
	claims := func(change func(*proof.Claim)) func(*http.Request) {
		return func(q *http.Request) { page.signAs(q, change) }
	}
	used := ""
	replay := func(q *http.Request) {
		browser(q)
		if used == "" {
			used = q.Header.Get(proof.Header)
		}
		q.Header.Set(proof.Header, used)
	}
	for _, tt := range []struct {
		name string
		set  func(*http.Request)
		want int
	}{
		{"no proof", func(q *http.Request) { browser(q); q.Header.Del(proof.Header) }, 403},
		{"the id of the session as a token", func(q *http.Request) {
			q.Header.Set("Authorization", "Bearer "+page.session)
		}, 403},
		{"a proof for another session", claims(func(c *proof.Claim) { c.Session = other.session }), 403},
		{"a proof for no session", claims(func(c *proof.Claim) { c.Session = "" }), 403},
		{"a proof for a program's session", claims(func(c *proof.Claim) { c.Session = r.session.Session.ID }), 403},
		{"a proof for another method", claims(func(c *proof.Claim) { c.Method = "GET" }), 403},
		{"a proof for another address", claims(func(c *proof.Claim) { c.URL += "?x" }), 403},
		{"a proof for another port", claims(func(c *proof.Claim) { c.URL = "http://127.0.0.1:1" + ops }), 403},
		{"a proof for another process", claims(func(c *proof.Claim) { c.Nonce = "x" }), 403},
		{"a proof from before", claims(func(c *proof.Claim) { c.Time -= 120 }), 403},
		{"a proof from later", claims(func(c *proof.Claim) { c.Time += 120 }), 403},
		{"a proof for another body", func(q *http.Request) {
			c := page.claim(q)
			browser(q)
			q.Header.Set(proof.Header, page.key.Claim(c, []byte(`{"kind":"rename","body":{"title":"y"}}`)))
		}, 403},
		{"a proof that somebody else signed", func(q *http.Request) {
			browser(q)
			q.Header.Set(proof.Header, other.key.Claim(page.claim(q), bodyOf(t, q)))
		}, 403},
		{"a proof that is used", replay, 200},
		{"a proof that was used", replay, 403},
		{"nonsense for a proof", set(proof.Header, "x.y"), 403},
	} {
		if status, text, _ := r.do("POST", ops, rename, tt.set); status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, status, text, tt.want)
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
		"POST /api/v1/push":                               403,
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
		if to.right == writing || to.right == anyone || to.method == "GET" {
			continue
		}
		if at := to.method + " " + to.path; at != "POST /api/v1/view" && at != "DELETE /api/v1/session" { // a stream; its own end
			t.Errorf("a read-only session may %s", at)
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
	status, text, head := r.do("GET", "/", "", del("Authorization"))
	if status != http.StatusOK || strings.Contains(text, "secret") {
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
