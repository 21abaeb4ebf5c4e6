package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	var r Registry
	turns := r.Counter("turns_total", "Turns that \\ ended.\nAll of them.", "reason")
	turns.Add(2, "completed")
	turns.Add(1, "a \"b\"\\\n")
	took := r.Histogram("turn_seconds", "How long.", []float64{1, 10})
	took.Observe(0.5)
	took.Observe(5)
	took.Observe(50)
	r.GaugeOf("open", "Open.", func() float64 { return 3 })
	r.Gauge("load", "By node.", []string{"node"}, func() []Sample { return []Sample{{[]string{"a"}, 1.5}} })
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `# HELP turns_total Turns that \\ ended.\nAll of them.
# TYPE turns_total counter
turns_total{reason="a \"b\"\\\n"} 1
turns_total{reason="completed"} 2
# HELP turn_seconds How long.
# TYPE turn_seconds histogram
turn_seconds_bucket{le="1"} 1
turn_seconds_bucket{le="10"} 2
turn_seconds_bucket{le="+Inf"} 3
turn_seconds_sum 55.5
turn_seconds_count 3
# HELP open Open.
# TYPE open gauge
open 3
# HELP load By node.
# TYPE load gauge
load{node="a"} 1.5
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestServer(t *testing.T) {
	var r Registry
	r.GaugeOf("up", "Up.", func() float64 { return 1 })
	var sick error
	s := Server{Metrics: &r, Token: "correct-horse-battery", Healthy: func() error { return sick }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }() // ended below
	get := func(path, token string) (int, string) {
		t.Helper()
		req, _ := http.NewRequest("GET", "http://"+l.Addr().String()+path, nil)
		if token != "" {
			req.Header.Set("Authorization", token)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for token, want := range map[string]int{"": 401, "Bearer x": 401, "correct-horse-battery": 401, "Bearer correct-horse-battery": 200} {
		if code, text := get("/metrics", token); code != want || strings.Contains(text, "up 1") != (want == 200) {
			t.Errorf("with %q: %d, %s", token, code, text)
		}
	}
	if code, text := get("/healthz", ""); code != 200 || text != "ok\n" {
		t.Errorf("%d, %s", code, text)
	}
	sick = errors.New("the servers do not answer")
	if code, text := get("/healthz", ""); code != 503 || !strings.Contains(text, "do not answer") {
		t.Errorf("%d, %s", code, text)
	}
	if code, _ := get("/other", ""); code != 404 {
		t.Errorf("%d", code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{"0123456789abcdef\n": "0123456789abcdef", "short": "", "": "", "0123456789 abcdef": ""} {
		if got, err := CheckToken([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A log that becomes too large is rotated between lines, and nothing of the latest lines is lost.
func TestLogIsRotated(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f.max = 300
	log := NewLog(f, slog.LevelInfo)
	for i := range 40 {
		log.Info("turn ended", "n", i)
		log.Debug("not wanted")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next := 39
	for _, file := range []string{name, name + ".1", name + ".2", name + ".3"} {
		text, err := os.ReadFile(file)
		if err != nil || len(text) > 300 {
			t.Fatalf("%s has %d bytes, %v", file, len(text), err)
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		for i := len(all) - 1; i >= 0; i-- {
			var line struct{ N int }
			if err := json.Unmarshal([]byte(all[i]), &line); err != nil || line.N != next {
				t.Fatalf("%s: %s, want line %d, %v", file, all[i], next, err)
			}
			next--
		}
	}
	if _, err := os.Stat(name + ".4"); err == nil {
		t.Error("more files are kept than should be")
	}
	// A file that is there is added to.
	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(name)
	NewLog(f, slog.LevelInfo).Info("again")
	after, _ := os.ReadFile(name)
	if !bytes.HasPrefix(after, before) || len(after) == len(before) {
		t.Errorf("%s then %s", before, after)
	}
	if _, err := OpenFile(t.TempDir()); err == nil {
		t.Error("a directory was opened as a log")
	}
	if _, err := ParseLevel("loud"); err == nil {
		t.Error("there is no such level")
	}
}
