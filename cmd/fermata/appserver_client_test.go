package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// An appSite is a place with an app-server that has the demo model.
type appSite struct {
	*place
	server *process
	socket string
}

// An appClient is a client of an app-server, over pipes or a socket.
type appClient struct {
	t      testing.TB
	server *process // on stdio
	write  func(string) error
	close  func()
	lines  chan string
	n      int
	thread string
	log    []string
}

var appFlags = []string{"app-server", "--demo", "-s", "workspace-write"}

// appOnStdio starts a server on pipes.
func (pl *place) appOnStdio(args ...string) *appClient {
	pl.t.Helper()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), append(append([]string{}, appFlags...), args...)...)
	in, err := pr.cmd.StdinPipe()
	if err != nil {
		pl.t.Fatal(err)
	}
	r, w := io.Pipe()
	pr.cmd.Stdout, pr.cmd.Stderr = w, &pr.err
	c := &appClient{t: pl.t, server: pr, lines: make(chan string, 100000)}
	c.write = func(line string) error { _, err := io.WriteString(in, line+"\n"); return err }
	c.close = func() { in.Close() }
	go func() { // ends with the process
		defer close(c.lines)
		for sc := bufio.NewReader(r); ; {
			line, err := sc.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	pr.begin(func() { w.Close() })
	c.initialize()
	return c
}

// newAppSite starts a server on a socket.
func newAppSite(t testing.TB, args ...string) *appSite {
	t.Helper()
	s := &appSite{place: newPlace(t)}
	s.socket = filepath.Join(s.dir, "s.sock")
	s.serve(args...)
	return s
}

func (s *appSite) serve(args ...string) {
	s.t.Helper()
	s.server = s.start(append(append([]string{}, appFlags...), append(args, "--listen", "unix://"+s.socket)...)...)
	eventually(s.t, "the server listens", func() bool { return s.server.err.has("listening") })
}

// connect connects to the socket.
func (s *appSite) connect() *appClient {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.socket)
	}}}
	conn, _, err := websocket.Dial(context.Background(), "ws://localhost/rpc", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	c := &appClient{t: s.t, lines: make(chan string, 100000)}
	c.write = func(line string) error { return conn.Write(context.Background(), websocket.MessageText, []byte(line)) }
	c.close = func() { conn.Close(websocket.StatusNormalClosure, "") }
	go func() { // ends with the connection
		defer close(c.lines)
		for {
			_, line, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			c.lines <- string(line)
		}
	}()
	s.t.Cleanup(func() { conn.CloseNow() })
	c.initialize()
	return c
}

func (c *appClient) initialize() {
	c.t.Helper()
	c.result("initialize", `{"clientInfo":{"name":"t","version":"1"}}`)
	c.send(`{"method":"initialized"}`)
}

func (c *appClient) send(line string) {
	c.t.Helper()
	if err := c.write(line); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a message.
func (c *appClient) next(what string) map[string]any {
	c.t.Helper()
	timer := time.NewTimer(untilDeadline(c.t))
	defer timer.Stop()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the stream has ended before %s", what)
		}
		c.log = append(c.log, line)
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		return m
	case <-timer.C:
		c.t.Fatalf("waited in vain for %s, after\n%s", what, strings.Join(c.log, "\n"))
	}
	return nil
}

// await reads up to a notification or request with a method.
func (c *appClient) await(method string) map[string]any {
	c.t.Helper()
	for {
		if m := c.next(method); m["method"] == method {
			return m
		}
	}
}

// ask sends a request; T in it stands for the thread.
func (c *appClient) ask(method, params string) int {
	c.t.Helper()
	c.n++
	params = strings.ReplaceAll(params, `"T"`, fmt.Sprintf("%q", c.thread))
	c.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, c.n, method, params))
	return c.n
}

// answer reads up to the answer to a request.
func (c *appClient) answer(id int) map[string]any {
	c.t.Helper()
	for {
		if m := c.next(fmt.Sprintf("the answer %d", id)); m["method"] == nil && m["id"] == float64(id) {
			return m
		}
	}
}

func (c *appClient) result(method, params string) map[string]any {
	c.t.Helper()
	m := c.answer(c.ask(method, params))
	r, ok := m["result"].(map[string]any)
	if !ok {
		c.t.Fatalf("%s: %v", method, m["error"])
	}
	return r
}

func (c *appClient) refused(method, params string) string {
	c.t.Helper()
	m := c.answer(c.ask(method, params))
	return fmt.Sprint(within(m, "error", "code"), " ", within(m, "error", "message"))
}

// start begins a thread.
func (c *appClient) start() {
	c.t.Helper()
	c.thread, _ = within(c.result("thread/start", `{}`), "thread", "id").(string)
}

// say starts a turn and returns its id.
func (c *appClient) say(text string) string {
	c.t.Helper()
	r := c.result("turn/start", fmt.Sprintf(`{"threadId":"T","input":[{"type":"text","text":%q}]}`, text))
	id, _ := within(r, "turn", "id").(string)
	return id
}

// within looks into a value.
func within(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// itemTexts is what the items of a thread's last turn hold.
func itemTexts(thread any) (status, texts string) {
	turns, _ := within(thread, "turns").([]any)
	if len(turns) == 0 {
		return "", ""
	}
	last := turns[len(turns)-1]
	list, _ := within(last, "items").([]any)
	for _, it := range list {
		texts += fmt.Sprint(within(it, "type"), " ", within(it, "text"), within(it, "aggregatedOutput"), "\n")
	}
	return fmt.Sprint(within(last, "status"), " ", within(last, "abortReason")), texts
}
