package listen

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/fermata-agent/fermata/internal/secrets"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Address{
		"stdio://": {Stdio: true}, "unix:///a/b": {Path: "/a/b"}, "unix://": {Path: "/default"},
		"ws://127.0.0.1:0": {TCP: "127.0.0.1:0"}, "ws://[::1]:80": {TCP: "[::1]:80"},
	} {
		if got, err := Parse(text, "/default"); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "stdio", "stdio://x", "ws://localhost:80", "ws://1.2.3.4", "http://1.2.3.4:5", "/a/b"} {
		if got, err := Parse(text, "/default"); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// echo serves lines by sending them back.
func echo(_ context.Context, in io.Reader, out io.Writer) error {
	_, err := io.Copy(out, in)
	return err
}

// serve serves at an address and returns where that is.
func serve(t *testing.T, a Address, token *Token, how func(context.Context, io.Reader, io.Writer) error) string {
	t.Helper()
	l, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, Options{Token: token, Serve: how, Log: slog.New(slog.DiscardHandler)}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if a.Path != "" {
			if _, err := os.Lstat(a.Path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is left behind: %v", err)
			}
		}
	})
	return l.Addr().String()
}

// unixClient connects to a socket, whatever the host.
func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
}

// shortDir is a directory whose name, unlike that of a test's own, is never too long for a socket in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "listen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "new", "s.sock")
	serve(t, Address{Path: path}, nil, echo)
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	conn, resp, err := websocket.Dial(t.Context(), "ws://localhost/rpc", &websocket.DialOptions{HTTPClient: unixClient(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if resp.Header.Get("x-codex-app-server-compression") != "" {
		t.Error("compression is accepted")
	}
	long := strings.Repeat("x", 200<<10)
	for _, message := range []string{`{"a":1}`, "{\"b\":\n2}", long} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(1 << 20)
		kind, got, err := conn.Read(t.Context())
		if want := strings.ReplaceAll(message, "\n", " "); err != nil || kind != websocket.MessageText || string(got) != want {
			t.Errorf("got %.50q, %v", got, err)
		}
	}
	if _, err := (Address{Path: path}).Open(t.Context()); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
}

// What a killed server left is replaced; anything else that is there stays.
func TestStaleSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	serve(t, Address{Path: path}, nil, echo)
	if resp, err := unixClient(path).Get("http://localhost/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", resp, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Address{Path: file}).Open(t.Context()); err == nil {
		t.Error("a file was replaced")
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Errorf("the file holds %q", text)
	}
}

func TestTCP(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("  correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := secrets.NewFile(secret)
	token, err := ReadToken(secrets.Home(t.TempDir()), &file)
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, Address{TCP: "127.0.0.1:0"}, token, echo)
	for name, tt := range map[string]struct {
		path, auth, origin string
		code               int
		body               string
	}{
		"ready":          {"/readyz", "", "", 200, ""},
		"healthy":        {"/healthz", "", "", 200, ""},
		"a page asks":    {"/readyz", "", "http://evil.example", 403, ""},
		"a page knows":   {"/", "Bearer correct horse battery", "http://evil.example", 403, ""},
		"no token":       {"/", "", "", 401, "missing websocket bearer token"},
		"empty token":    {"/", "Bearer ", "", 401, "missing websocket bearer token"},
		"wrong token":    {"/rpc", "Bearer correct horse", "", 401, "invalid websocket bearer token"},
		"no upgrade":     {"/", "Bearer correct horse battery", "", 426, ""},
		"another scheme": {"/", "Basic correct horse battery", "", 401, "missing websocket bearer token"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+tt.path, nil)
		if tt.auth != "" {
			req.Header.Set("Authorization", tt.auth)
		}
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.code || !strings.Contains(string(body), tt.body) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	header := http.Header{"Authorization": {"Bearer correct horse battery"}}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+at+"/", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	conn.CloseNow()
	hashed, err := ParseHash("c4bbcb1fbec99d65bf59d85c8cb62ee2db963f0fe106f483d9afa73bd4e39a8a")
	if err != nil || hashed.sum == token.sum {
		t.Errorf("%v, %v", hashed, err)
	}
	for _, bad := range []string{"", "xyz", "c4bb"} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("%q is a hash", bad)
		}
	}
}

// The end of the server ends its connections, after what they still have to say.
func TestServeEnds(t *testing.T) {
	path := filepath.Join(shortDir(t), "s.sock")
	l, err := (Address{Path: path}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		done <- Serve(ctx, l, Options{Log: slog.New(slog.DiscardHandler), Serve: func(ctx context.Context, _ io.Reader, out io.Writer) error {
			close(began)
			<-ctx.Done()
			_, err := io.WriteString(out, "bye\n")
			return err
		}})
	}()
	conn, _, err := websocket.Dial(t.Context(), "ws://localhost/", &websocket.DialOptions{HTTPClient: unixClient(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	<-began
	cancel()
	if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "bye" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the connection ends with %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A server that ends does not wait for a client that does not answer the close: its turns would run on.
func TestLeaveUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unanswered = 5 * time.Second
		leaving := func(ctx context.Context) time.Duration {
			began := time.Now()
			leave(ctx, func() { time.Sleep(unanswered) })
			return time.Since(began)
		}
		if took := leaving(t.Context()); took != unanswered {
			t.Errorf("a server that stays waited %v", took)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if took := leaving(ended); took != leaveTime {
			t.Errorf("a server that ends waited %v", took)
		}
		time.Sleep(unanswered) // until what it left behind has ended
	})
}
