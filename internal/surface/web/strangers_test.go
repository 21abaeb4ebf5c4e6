package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
)

// Who is not known sends little: the rest is not read.
func TestStrangersSendLittle(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name, path string
		size       int
		known      bool
		want       int
	}{
		{"a login", "/api/v1/login", 1 << 10, false, http.StatusForbidden},
		{"a large login", "/api/v1/login", 8 << 10, false, http.StatusRequestEntityTooLarge},
		{"a large answer", "/answer/x", 8 << 10, false, http.StatusForbidden},
		{"a large message of a stranger", "/api/v1/conversations", 1 << 20, false, http.StatusForbidden},
		{"a large message", "/api/v1/conversations", 1 << 20, true, http.StatusCreated},
	} {
		body := `{"code":"` + strings.Repeat("x", tt.size) + `"}`
		if tt.path == "/api/v1/conversations" {
			body = `{"cwd":"/w","prompt":"` + strings.Repeat("x", tt.size) + `"}`
		}
		set := func(q *http.Request) {
			if !tt.known {
				q.Header.Del("Authorization")
			}
		}
		if status, text, _ := r.do("POST", tt.path, body, set); status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, status, text, tt.want)
		}
	}
}

// Logins that are half sent cost little, however many there are and however large they say they are: with a limit for the body of 16 MiB, 40
// of them took 1 GB.
func TestHalfSentLoginsCostLittle(t *testing.T) {
	r := newRig(t)
	address := strings.TrimPrefix(r.http.URL, "http://")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	part := bytes.Repeat([]byte("x"), 1<<20)
	answered := make(chan error)
	const logins = 40
	for range logins {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			_, err := fmt.Fprintf(c, "POST /api/v1/login HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{\"code\":\"", address, 16<<20)
			if err == nil {
				_, _ = c.Write(part) // it may not be read
			}
			_, err = io.ReadAtLeast(c, make([]byte, 12), 12)
			answered <- err
		}()
	}
	for range logins {
		if err := <-answered; err != nil {
			t.Logf("a connection was closed: %v", err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc) - int64(before.TotalAlloc); grown > 40<<20 {
		t.Errorf("%d MB were allocated for %d logins", grown>>20, logins)
	}
}

// A session that can only read does not take all streams, and no session takes them all.
func TestStreamsAreShared(t *testing.T) {
	s := slots{most: maxStreams, perSession: sessionStreams, readers: readerStreams}
	taken := map[bool]int{}
	for i := range 20 {
		x := access.Session{ID: fmt.Sprint(i), ReadOnly: i < 10}
		n := 0
		for s.take(x) {
			n++
		}
		if n > sessionStreams {
			t.Errorf("session %d has %d streams", i, n)
		}
		taken[x.ReadOnly] += n
	}
	if taken[true] != readerStreams || taken[false] != maxStreams-readerStreams {
		t.Errorf("readers have %d, the owner has %d", taken[true], taken[false])
	}
	s.release(access.Session{ID: "0", ReadOnly: true})
	if !s.take(access.Session{ID: "9", ReadOnly: true}) || s.take(access.Session{ID: "0", ReadOnly: true}) {
		t.Error("what was released is not counted right")
	}
}

// A stream that has ended gives its place back.
func TestAStreamGivesItsPlaceBack(t *testing.T) {
	r := newRig(t)
	id := r.begin("hi")
	var streams []*reader
	for range sessionStreams {
		streams = append(streams, r.view(id, newScreen()))
	}
	q, _ := http.NewRequestWithContext(t.Context(), "POST", r.http.URL+"/api/v1/view", strings.NewReader(`{"have":{"cursor":0}}`))
	q.Header.Set("Authorization", "Bearer "+r.session.Token)
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d", res.StatusCode)
	}
	r.session = r.login(access.Everything)
	other := r.view(id, newScreen())
	newScreen().take(t, other) // another session has room
	for _, s := range append(streams, other) {
		s.cancel()
	}
	r.http.Close() // waits until all have ended
	if n := r.server.streams.taken; n != 0 {
		t.Errorf("%d places were not given back", n)
	}
}

// A request of a session that has too many connections is refused.
func TestOneConnectionTooMany(t *testing.T) {
	r := newRig(t)
	of := limited(pipes{})
	of.known.most = 1
	for i, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		q := httptest.NewRequestWithContext(withConnection(t.Context(), &connection{of: of}), "GET", r.http.URL+"/api/v1/session", nil)
		q.Header.Set("Authorization", "Bearer "+r.session.Token)
		w := httptest.NewRecorder()
		r.server.ServeHTTP(w, q)
		if w.Code != want {
			t.Errorf("connection %d: %d %s", i, w.Code, w.Body)
		}
	}
}

// The server shows who it is to whoever asks, signs its answers, and refuses pages without a key.
func TestTheServerShowsWhoItIs(t *testing.T) {
	r := newRig(t)
	key, _ := r.access.Key()
	const challenge = "0123456789012345678901"
	_, text, _ := r.do("GET", "/api/v1/hello?challenge="+challenge, "", del("Authorization"))
	var h proof.Hello
	if err := json.Unmarshal([]byte(text), &h); err != nil || !h.Answers(challenge, key.Public()) || h.Origin != r.http.URL || h.Nonce != r.server.fresh.Nonce {
		t.Errorf("%s, %v", text, err)
	}
	page := r.browser(access.Everything)
	for _, path := range []string{"/api/v1/session", "/api/v1/nope"} {
		var claim proof.Claim
		_, _, head := r.do("GET", path, "", func(q *http.Request) { page.signAs(q, func(c *proof.Claim) { claim = *c }) })
		if !proof.AnsweredBy(key.Public(), claim.ID, r.http.URL, head.Get(proof.AnswerHeader)) {
			t.Errorf("%s: the answer is not signed", path)
		}
	}
	for name, set := range map[string]func(*http.Request){"no key": func(*http.Request) {}, "Sec-Fetch-Site": set("Sec-Fetch-Site", "same-origin")} {
		code, _ := r.access.NewLink(access.Everything)
		status, text, _ := r.do("POST", "/api/v1/login", `{"code":"`+code+`"}`, func(q *http.Request) {
			q.Header.Del("Authorization")
			q.Header.Set("Origin", r.http.URL)
			set(q)
		})
		if status != http.StatusForbidden || !strings.Contains(text, "tokens are for programs") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// A session is known where it logged in, and nowhere else.
func TestASessionBelongsToItsOrigin(t *testing.T) {
	r := newRig(t)
	page := r.browser(access.Everything)
	if status, text, _ := r.do("GET", "/api/v1/session", "", page.sign); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	err := r.access.Change(func(st *access.State) error {
		for i := range st.Sessions {
			if st.Sessions[i].ID == page.session {
				st.Sessions[i].Origin = "http://127.0.0.1:1"
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, text, _ := r.do("GET", "/api/v1/session", "", page.sign); status != http.StatusForbidden || !strings.Contains(text, `"code":"token"`) {
		t.Errorf("%d %s", status, text)
	}
}

// Over plain HTTP beyond this machine there is no page.
func TestThePageNeedsASecureContext(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://127.0.0.1:1": false, "http://[::1]:1": false, "https://192.168.0.1:1": false, "https://name:1": false,
		"http://192.168.0.1:1": true, "http://name:1": true, "http://localhost:1": true, "": true,
	} {
		if got := insecure(origin); got != want {
			t.Errorf("%q: %v", origin, got)
		}
	}
	r := newRig(t)
	r.server.origins["name:1"] = "http://name:1"
	status, text, _ := r.do("GET", "/", "", host("name:1"))
	if status != http.StatusForbidden || !strings.Contains(text, "needs HTTPS") || strings.Contains(text, "<script") {
		t.Errorf("%d %s", status, text)
	}
}

// A program that listens where the page was is noticed, unless it has our key.
func TestForeign(t *testing.T) {
	r := newRig(t)
	key, _ := r.access.Key()
	if Foreign(t.Context(), r.http.URL, key) {
		t.Error("our own server is foreign")
	}
	other, err := proof.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if !Foreign(t.Context(), r.http.URL, other) {
		t.Error("a server with another key is not")
	}
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, text, _ := r.do("GET", q.RequestURI, "", del("Authorization"))
		_, _ = io.WriteString(w, text)
	}))
	defer relay.Close()
	if !Foreign(t.Context(), relay.URL, key) {
		t.Error("a program that passes on what our own server says is not foreign")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + l.Addr().String()
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	if !Foreign(t.Context(), origin, key) {
		t.Error("a program that hangs up is not foreign")
	}
	l.Close()
	if Foreign(t.Context(), origin, key) {
		t.Error("no client listens")
	}
}
