package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// One process serves the socket, the page and the app-server; a turn that was started by one is seen by the others.
func TestServeServices(t *testing.T) {
	t.Parallel()
	s := &appSite{place: newPlace(t)}
	s.socket = filepath.Join(s.dir, "s.sock")
	s.server = s.start("serve", "--demo", "-s", "workspace-write", "--http", "--app-server", "unix://"+s.socket)
	eventually(t, "the link is printed", func() bool {
		return strings.Contains(s.server.out.String(), "/?link=") && s.server.err.has("listening")
	})
	c := s.connect()
	c.start()
	c.say("run: echo begun; sleep 641")
	c.await("item/commandExecution/outputDelta")
	contains(t, "ps", s.must("ps"), "(serve)", "running")
	res, err := http.Get(strings.TrimSpace(s.server.out.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if page, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(page), "<title>fermata") {
		t.Errorf("the page: %d, %v\n%s", res.StatusCode, err, page)
	}
	s.must("interrupt", s.conversation())
	c.await("turn/completed")
	s.server.signal(syscall.SIGTERM)
	if code := s.server.code(); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.server.err.String())
	}
}

func TestServeMistakes(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	for want, args := range map[string][]string{
		"a token needs --app-server":    {"--ws-auth", "capability-token"},
		"many are served":               {"--app-server", "stdio://"},
		"needs a token":                 {"--app-server", "ws://127.0.0.1:0"},
		"--http-name needs --http":      {"--http-name", "x"},
		"an address needs --http":       {"127.0.0.1:7"},
		"--idle must not be negative":   {"--idle", "-1s"},
		"--demo has no effect on links": {"--link"},
		"two addresses are given":       {"--http=127.0.0.1:1", "127.0.0.1:2"},
	} {
		_, stderr, code := pl.run(append([]string{"serve", "--demo"}, args...)...)
		if code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, want %q in\n%s", args, code, want, stderr)
		}
	}
}
