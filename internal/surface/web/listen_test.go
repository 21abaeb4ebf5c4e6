package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/store/memory"
)

func TestListen(t *testing.T) {
	home := t.TempDir()
	for _, tt := range []struct {
		name   string
		a      Address
		scheme string // empty if it is refused
	}{
		{"loopback", Address{Listen: "127.0.0.1:0"}, "http"},
		{"beyond loopback", Address{Listen: "0.0.0.0:0", Home: home}, "https"},
		{"beyond loopback, forced", Address{Listen: "0.0.0.0:0", Plain: true}, "http"},
		{"no port", Address{Listen: "127.0.0.1"}, ""},
		{"a certificate without a key", Address{Listen: "127.0.0.1:0", Cert: "x"}, ""},
		{"a certificate that is not there", Address{Listen: "127.0.0.1:0", Cert: "/nowhere/c", Key: secrets.NewFile("/nowhere/k")}, ""},
		{"plain with a certificate", Address{Listen: "127.0.0.1:0", Plain: true, Cert: "c", Key: secrets.NewFile("k")}, ""},
	} {
		e, err := Listen(t.Context(), tt.a)
		if (err == nil) != (tt.scheme != "") {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if err != nil {
			continue
		}
		if !strings.HasPrefix(e.Origins[0], tt.scheme+"://") || (e.Fingerprint != "") != (tt.scheme == "https") {
			t.Errorf("%s: %v %s", tt.name, e.Origins, e.Fingerprint)
		}
		e.Close()
	}
	if info, err := os.Stat(filepath.Join(home, "keys", "web-cert.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

// The port and the certificate are those of before, so that pages find the server again and browsers still trust it.
func TestListenAgain(t *testing.T) {
	a := Address{Listen: "0.0.0.0:0", Home: t.TempDir()}
	first, err := Listen(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	a.LastPort = first.Port()
	if got := secrets.Home(a.Home).Ports(); !slices.Equal(got, []uint16{uint16(first.Port())}) {
		t.Errorf("ports that commands cannot reach: %d, want %d", got, first.Port())
	}
	first.Close()
	second, err := Listen(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Port() != first.Port() || second.Fingerprint != first.Fingerprint {
		t.Errorf("%d %s, then %d %s", first.Port(), first.Fingerprint, second.Port(), second.Fingerprint)
	}
	third, err := Listen(t.Context(), a) // it is taken now
	if err != nil {
		t.Fatal(err)
	}
	third.Close()
}

func TestServeWithTLS(t *testing.T) {
	e, err := Listen(t.Context(), Address{Listen: "0.0.0.0:0", Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- e.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Context().Value(connectionKey{}) == nil { // it would stay a stranger's
				t.Error("the connection of a request is not known")
			}
			io.WriteString(w, "hi")
		}))
	}()
	_, port, _ := strings.Cut(strings.TrimPrefix(e.Origins[len(e.Origins)-1], "https://"), ":")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	res, err := client.Get("https://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Errorf("HTTP %s", res.Proto)
	}
	if res, err := http.Get("http://127.0.0.1:" + port); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP got %d", res.StatusCode)
		}
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Who sends a request slowly is cut off.
func TestSlowRequestsAreCutOff(t *testing.T) {
	for name, beginning := range map[string]string{
		"header":  "GET / HTTP/1.1\r\nHost: x\r\nX-A: ",
		"body":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{",
		"nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := pipes{make(chan net.Conn), make(chan struct{})}
				e := &Endpoint{listener: limited(l)}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					done <- e.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
				}()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					if _, err := io.WriteString(ours, beginning); err != nil {
						return
					}
					for { // a byte now and then
						time.Sleep(time.Second)
						if _, err := io.WriteString(ours, "a"); err != nil {
							return
						}
					}
				}()
				start := time.Now()
				_, _ = io.Copy(io.Discard, ours) // until it is closed
				if took := time.Since(start); took > 2*requestTime {
					t.Errorf("it held a connection for %v", took)
				}
				ours.Close()
				<-sent
				cancel()
				<-done
			})
		})
	}
}

// Who has no session is cut off sooner, whatever is asked for.
func TestStrangersHaveLittleTime(t *testing.T) {
	for _, path := range []string{"/api/v1/login", "/answer/x", "/api/v1/conversations", "/api/v1/nope"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := engine.Open(t.Context(), engine.Config{Store: memory.New(), Model: engine.ModelFunc(new(rig).model)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				s := New(ctx, Options{Engine: e, Access: access.Open(t.TempDir()), Origins: []string{"http://x"}})
				l := pipes{make(chan net.Conn), make(chan struct{})}
				done := make(chan error)
				go func() { done <- (&Endpoint{listener: limited(l)}).Serve(ctx, s) }()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				if _, err := io.WriteString(ours, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				answer, _ := io.ReadAll(ours) // until it is closed
				if took := time.Since(start); took > strangerTime+time.Second || len(answer) == 0 {
					t.Errorf("it held a connection for %v: %s", took, answer)
				}
				ours.Close()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := e.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// accepts has a listener accept connections in memory, and returns the other ends.
func accepts(t *testing.T, l pipes, lim *connections, n int) (ours, theirs []net.Conn) {
	t.Helper()
	for range n {
		a, b := net.Pipe()
		go func() { l.conns <- b }()
		c, err := lim.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs = append(ours, a), append(theirs, c)
	}
	return ours, theirs
}

// Strangers have few connections, of which the oldest is closed for the newest; they take none of those of sessions, nor
// can a session, or all that can only read, take all of them.
func TestConnectionsAreLimited(t *testing.T) {
	l := pipes{make(chan net.Conn), make(chan struct{})}
	lim := limited(l)
	belongs := func(c net.Conn, x access.Session) bool { return c.(*connection).belongs(x) }
	ours, theirs := accepts(t, l, lim, maxStrangers)
	if !belongs(theirs[0], access.Session{ID: "owner"}) {
		t.Fatal("the owner has no room")
	}
	accepts(t, l, lim, 2)
	if _, err := ours[1].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest stranger was not closed")
	}
	go func() { _, _ = theirs[0].Write([]byte("x")) }() // ends when it is read, or with the connection
	if _, err := ours[0].Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection of the owner, which is older, was closed for strangers: %v", err)
	}
	if n := lim.Count(); n != maxStrangers {
		t.Errorf("%d strangers", n)
	}
	held := 0
	for i := range 6 {
		for range maxPerSession + 1 {
			_, conns := accepts(t, l, lim, 1)
			if belongs(conns[0], access.Session{ID: fmt.Sprint("reader", i), ReadOnly: true}) {
				held++
			}
		}
	}
	if held != maxReaders {
		t.Errorf("readers have %d connections", held)
	}
	for i := range maxPerSession + 1 {
		_, conns := accepts(t, l, lim, 1)
		if got := belongs(conns[0], access.Session{ID: "second"}); got != (i < maxPerSession) {
			t.Errorf("connection %d of a session: %v", i, got)
		}
	}
	theirs[0].Close()
	theirs[0].Close() // counts once
	if n := lim.known.taken; n != maxReaders+maxPerSession {
		t.Errorf("%d are open", n)
	}
	l.Close()
}
