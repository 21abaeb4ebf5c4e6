package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A thief listens where the server was, answers whatever is asked, and keeps all that it is sent.
type thief struct {
	mu   sync.Mutex
	sent []string
}

func newThief(t *testing.T, address string, answer http.HandlerFunc) *thief {
	t.Helper()
	h := &thief{}
	var l net.Listener
	eventually(t, "the port is free", func() bool {
		var err error
		l, err = net.Listen("tcp", address)
		return err == nil
	})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var text strings.Builder
		_ = r.Header.Write(&text)
		h.mu.Lock()
		h.sent = append(h.sent, r.Method+" "+r.RequestURI+"\n"+text.String()+string(body))
		h.mu.Unlock()
		answer(w, r)
	})}
	go func() { _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() { srv.Close() })
	return h
}

func (h *thief) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.sent, "\n")
}

// helloOf answers as the server does, properly signed, with a key that is not the server's.
func helloOf(t *testing.T, key *ecdsa.PrivateKey, origin, challenge string) map[string]any {
	public, err := key.PublicKey.Bytes()
	if err != nil {
		t.Error(err)
	}
	now := time.Now().Unix()
	sum := sha256.Sum256([]byte(strings.Join([]string{"fermata hello", challenge, origin, "n", strconv.FormatInt(now, 10)}, "\n")))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Error(err)
	}
	signature := s.FillBytes(make([]byte, 64)) // as a browser reads it: r and s, 32 bytes each
	r.FillBytes(signature[:32])
	return map[string]any{
		"key": base64.RawURLEncoding.EncodeToString(public), "origin": origin, "nonce": "n", "time": now,
		"signature": base64.RawURLEncoding.EncodeToString(signature),
	}
}

// The server dies and another program takes its port. The open page gives it nothing that it can use: no token, no cookie, no
// proof, no message, only a random text. What was pressed meanwhile is not sent either. Then the page needs a new link, also when the
// server is there again.
func TestAnotherProgramOnThePort(t *testing.T) {
	s := newServer(t, "-a", "untrusted")
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("run: touch victim")
	p.sees("Allow this command?")
	id := p.id()
	address := strings.TrimPrefix(s.origin(), "http://")
	s.kill()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h := newThief(t, address, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(helloOf(t, key, s.origin(), r.URL.Query().Get("challenge")))
	})
	p.sees("Another program answers here")
	for _, x := range []string{"Fermata-Proof", "Cookie", "Authorization", "jti", "victim", id} {
		if strings.Contains(h.all(), x) {
			t.Errorf("it was sent %q:\n%s", x, h.all())
		}
	}
	if !strings.Contains(h.all(), "GET /api/v1/hello?challenge=") {
		t.Errorf("it was not asked who it is:\n%s", h.all())
	}
	// The session is gone from the browser: another tab has none, although the real server is back, at another port.
	s.start()
	fresh := b.open(s.origin() + "/")
	fresh.sees("No session")
	list, err := s.fermata("web", "--list").Output()
	if err != nil || strings.Contains(string(list), "session") {
		t.Errorf("sessions are left: %s, %v", list, err)
	}
	again := b.open(s.newLink())
	again.until(`!!document.querySelector("#list a")`)
	again.noProblems()
}

// A server whose key has changed is another one.
func TestTheKeyOfTheServerHasChanged(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "never")
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("talk 3")
	p.ready()
	s.kill()
	file := filepath.Join(s.home, "keys", "web.json")
	var state map[string]any
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(state, "key")
	data, _ = json.Marshal(state)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	p.sees("Another program answers here")
	b.open(s.link).until(`!!document.querySelector("#list a")`)
}
