package notify

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

type tool struct{}

func (tool) Spec() engine.ToolSpec { return engine.ToolSpec{Name: "work"} }

func (tool) Run(_ context.Context, c engine.Call) (engine.Output, error) {
	if c.Decision == "" {
		return engine.Output{}, &engine.ApprovalError{Command: []string{"make", "coffee"}}
	}
	return engine.Output{Text: "worked"}, nil
}

// model calls the tool once, then says something.
func model(_ context.Context, q engine.Request, reply *engine.Reply) error {
	if q.Items[len(q.Items)-1].Kind == p.PromptOutput || q.LastMessage() == "talk" {
		reply.Text("done")
		return nil
	}
	reply.Call("c1", "work", "{}")
	return nil
}

type rig struct {
	t      *testing.T
	engine *engine.Local
	access *access.Store
	failed chan error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{Store: memory.New(), Model: engine.ModelFunc(model), Tools: []engine.Tool{tool{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	return &rig{t, e, access.Open(t.TempDir()), make(chan error, 10)}
}

// run notifies until the test ends.
func (r *rig) run(hook *Webhook, push *Push) {
	ctx, cancel := context.WithCancel(r.t.Context())
	n := newNotifier(Options{ // before what the test begins, whenever its goroutine gets to run
		Engine: r.engine, Lobby: live.NewLobby(ctx, live.Options{Engine: r.engine}), Access: r.access, Origin: "http://page", Hook: hook, Push: push,
		Failed: func(err error) { r.failed <- err },
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
}

func (r *rig) begin(text string) p.ConversationID {
	r.t.Helper()
	id, err := r.engine.Create(r.t.Context(), p.Settings{Cwd: "/w"})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.engine.Submit(r.t.Context(), id, p.UserTurn{Content: p.Text(text)}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func TestWebhook(t *testing.T) {
	r := newRig(t)
	r.begin("talk") // before we began: nobody wants to know
	got := make(chan Message, 10)
	fail := 1
	ids := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		id, at := q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp")
		if want := Sign("s3cret", id, at, body); q.Header.Get("webhook-signature") != want {
			t.Errorf("signature %q, want %q", q.Header.Get("webhook-signature"), want)
		}
		ids[id]++
		if fail--; fail >= 0 { // it is sent again, under the same id
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var m Message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	defer srv.Close()
	hook, err := NewWebhook(srv.URL, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	hook.waits = []time.Duration{time.Millisecond}
	r.run(hook, nil)
	id := r.begin("work")
	next := func(want string) Message {
		t.Helper()
		for {
			select {
			case m := <-got:
				if m.Conversation == id {
					if m.Type != want {
						t.Fatalf("got %s, want %s", m.Type, want)
					}
					return m
				}
			case err := <-r.failed:
				t.Fatal(err)
			}
		}
	}
	m := next("approval_requested")
	if strings.Join(m.Command, " ") != "make coffee" || !strings.HasPrefix(m.AnswerURL, "http://page/answer/") || m.URL != "http://page/#/c/"+string(id) {
		t.Errorf("%+v", m)
	}
	a, err := r.access.AnswerOf(strings.TrimPrefix(m.AnswerURL, "http://page/answer/"))
	if err != nil || a.Conversation != id || a.Call != *m.Call {
		t.Errorf("the answer's code is for %+v, %v", a, err)
	}
	if _, err := r.engine.Submit(t.Context(), id, p.Approve{Call: *m.Call, Decision: p.Approved}); err != nil {
		t.Fatal(err)
	}
	if m := next("turn_ended"); m.Reason != p.Completed {
		t.Errorf("%+v", m)
	}
}

// What a conversation that is not followed any more still sends, the error of its end above all, changes nothing.
func TestLateEventsOfAConversation(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	id := p.NewConversationID(time.Now())
	n := &notifier{follows: map[p.ConversationID]*follow{id: {cursor: 3}}}
	for _, h := range []happened{
		{following: ended, id: id, err: context.Canceled},
		{following: ended, id: id, event: p.Event{Seq: 4, Time: time.Now(), Turn: 1, Body: &p.TurnEnded{Reason: p.Completed}}},
	} {
		if m, ok := n.message(h); ok || n.follows[id].cursor != 3 {
			t.Errorf("%+v: message %+v, cursor %d", h, m, n.follows[id].cursor)
		}
	}
}

func TestWebhookAddresses(t *testing.T) {
	for to, ok := range map[string]bool{"https://x.example/h": true, "http://127.0.0.1:1/h": true, "http://x.example/h": false, "ftp://x": false, "": false} {
		if _, err := NewWebhook(to, "s"); (err == nil) != ok {
			t.Errorf("%q: %v", to, err)
		}
	}
	if _, err := NewWebhook("https://x.example", ""); err == nil {
		t.Error("a webhook without a secret")
	}
	if got := Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" { // the standard's own example
		t.Errorf("signature %s", got)
	}
}

// A browser is what a push service delivers to: it has a key of its own.
type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := browser{key, make([]byte, 16)}
	rand.Read(b.auth)
	return b
}

// open decrypts a message (RFC 8291, RFC 8188).
func (b browser) open(t *testing.T, body []byte) []byte {
	t.Helper()
	salt, n := body[:16], int(body[20])
	theirs, err := ecdh.P256().NewPublicKey(body[21 : 21+n])
	if err != nil {
		t.Fatal(err)
	}
	shared, err := b.key.ECDH(theirs)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		k, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ikm := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(theirs.Bytes()), 32)
	block, err := aes.NewCipher(derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	text, err := gcm.Open(nil, derive(ikm, salt, "Content-Encoding: nonce\x00", 12), body[21+n:], nil)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.TrimRight(string(text), "\x00"))
	return text[:len(text)-1] // the mark of the last record
}

func TestPush(t *testing.T) {
	r := newRig(t)
	b := newBrowser(t)
	got := make(chan []byte, 10)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
			return
		}
		if !strings.HasPrefix(q.Header.Get("Authorization"), "vapid t=") || q.Header.Get("Content-Encoding") != "aes128gcm" {
			t.Errorf("headers %v", q.Header)
		}
		body, _ := io.ReadAll(q.Body)
		w.WriteHeader(http.StatusCreated)
		got <- body
	}))
	defer service.Close()
	code, _ := r.access.NewLink(access.Everything)
	c, err := r.access.Login(code, access.Client{Name: "phone", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	push, err := NewPush(r.access, []string{strings.TrimPrefix(service.URL, "https://")})
	if err != nil {
		t.Fatal(err)
	}
	push.client.Transport = service.Client().Transport
	enc := base64.RawURLEncoding.EncodeToString
	for _, path := range []string{"/gone", "/here"} {
		err := push.Subscribe(r.access, access.PushClient{Session: c.Session.ID, Endpoint: service.URL + path, Auth: enc(b.auth), P256dh: enc(b.key.PublicKey().Bytes())})
		if err != nil {
			t.Fatal(err)
		}
	}
	if again, err := NewPush(r.access, nil); err != nil || again.Key() != push.Key() {
		t.Errorf("the key changed: %v", err)
	}
	r.run(nil, push)
	id := r.begin("work")
	var m pushed
	if err := json.Unmarshal(b.open(t, <-got), &m); err != nil {
		t.Fatal(err)
	}
	if m.Conversation != id || !strings.Contains(m.Body, "make coffee") {
		t.Errorf("%+v", m)
	}
	st, err := r.access.Read()
	if err != nil || len(st.Push) != 1 || !strings.HasSuffix(st.Push[0].Endpoint, "/here") {
		t.Errorf("%+v, %v", st.Push, err)
	}
	if _, err := r.access.Revoke(c.Session.ID); err != nil {
		t.Fatal(err)
	}
	if st, _ := r.access.Read(); len(st.Push) != 0 {
		t.Error("a revoked session is still notified")
	}
}

// Notifications go to the push services of browsers and to those that the operator allows, not to whatever a client names.
func TestPushServices(t *testing.T) {
	push := &Push{others: []string{"push.example:8443", ".allowed.example"}}
	for endpoint, want := range map[string]bool{
		"https://fcm.googleapis.com/fcm/send/x":                true,
		"https://updates.push.services.mozilla.com/wpush/v2/x": true,
		"https://wns2-par02p.notify.windows.com/w/?token=x":    true,
		"https://web.push.apple.com/x":                         true,
		"https://push.example:8443/x":                          true,
		"https://a.allowed.example/x":                          true,
		"http://fcm.googleapis.com/x":                          false,
		"https://fcm.googleapis.com:8080/x":                    false,
		"https://fcm.googleapis.com@127.0.0.1/x":               false,
		"https://evilfcm.googleapis.com.evil.example/x":        false,
		"https://evilpush.services.mozilla.com/x":              false,
		"https://evilfcm.googleapis.com/x":                     false,
		"https://user@fcm.googleapis.com/x":                    false,
		"https://push.example/x":                               false,
		"https://127.0.0.1/x":                                  false,
		"http://127.0.0.1:9/x":                                 false,
		"https://[::1]/x":                                      false,
		"file:///etc/passwd":                                   false,
		"":                                                     false,
	} {
		if got := push.allowed(endpoint); got != want {
			t.Errorf("%q: %v", endpoint, got)
		}
	}
	store := access.Open(t.TempDir())
	code, err := store.NewLink(access.Everything)
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Login(code, access.Client{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Change(func(st *access.State) error {
		st.Push = append(st.Push, access.PushClient{Session: c.Session.ID, Endpoint: "https://127.0.0.1/x"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := push.send(t.Context(), store, Message{}); err != nil {
		t.Errorf("one that was subscribed when it was allowed was sent to: %v", err)
	}
}
