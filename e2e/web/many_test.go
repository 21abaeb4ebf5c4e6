package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An api is a program that uses the API.
type api struct {
	t      *testing.T
	origin string
	token  string
}

func newAPI(t *testing.T, s *server) *api {
	t.Helper()
	a := &api{t: t, origin: s.origin()}
	_, code, _ := strings.Cut(s.newLink(), "link=")
	var in struct {
		Token string `json:"token"`
	}
	a.do("POST", "/login", map[string]string{"code": code}, &in)
	a.token = in.Token
	return a
}

func (a *api) request(ctx context.Context, method, path string, body any) *http.Response {
	a.t.Helper()
	data, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(ctx, method, a.origin+"/api/v1"+path, strings.NewReader(string(data)))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.token)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(res.Body)
		a.t.Fatalf("%s %s: %s %s", method, path, res.Status, text)
	}
	return res
}

func (a *api) do(method, path string, body, into any) {
	a.t.Helper()
	res := a.request(a.t.Context(), method, path, body)
	defer res.Body.Close()
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			a.t.Fatal(err)
		}
	}
}

// turn runs a turn and returns how long it took.
func (a *api) turn(id, text string) time.Duration {
	a.t.Helper()
	start := time.Now()
	var receipt struct{ Seq int }
	a.do("POST", "/conversations/"+id+"/ops", map[string]any{"kind": "user_turn", "body": map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}}, &receipt)
	ctx, cancel := context.WithCancel(a.t.Context())
	defer cancel()
	res := a.request(ctx, "GET", fmt.Sprintf("/conversations/%s/events?after=%d", id, receipt.Seq), nil)
	defer res.Body.Close()
	for r := bufio.NewReader(res.Body); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			a.t.Fatalf("the stream ended: %v", err)
		}
		if strings.Contains(line, `"kind":"turn_ended"`) {
			return time.Since(start)
		}
	}
}

// usage is what a process has used: seconds of CPU, and memory in MB.
func usage(t *testing.T, pid int) (cpu float64, mb int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	user, _ := strconv.Atoi(f[12])
	system, _ := strconv.Atoi(f[13])
	pages, _ := strconv.Atoi(f[22])
	return float64(user+system) / 100, pages * os.Getpagesize() >> 20
}

// With 200 pages on a conversation its turns take as long as with none. What it costs is printed.
func TestManyPages(t *testing.T) {
	if !*many {
		t.Skip("only with -many")
	}
	s := newServer(t, "-a", "never")
	a := newAPI(t, s)
	var c struct{ ID string }
	a.do("POST", "/conversations", map[string]string{"prompt": "talk 2"}, &c)
	work := []string{"talk 200", "run: for i in $(seq 3000); do echo line $i; done"}
	measure := func(name string) (total time.Duration) {
		before, _ := usage(t, s.cmd.Process.Pid)
		for _, w := range work {
			took := a.turn(c.ID, w)
			total += took
			t.Logf("%s: %q took %v", name, w, took.Round(time.Millisecond))
		}
		after, mb := usage(t, s.cmd.Process.Pid)
		t.Logf("%s: %.2f s of CPU, %d MB", name, after-before, mb)
		return total
	}
	eventually(t, "the first turn has ended", func() bool { return ended(t, s, c.ID, 1) })
	none := measure("no page")
	ctx, cancel := context.WithCancel(t.Context())
	var pages sync.WaitGroup
	var viewer *api
	for i := range 200 {
		if i%50 == 0 { // a session may not ask for so much at once
			viewer = newAPI(t, s)
		}
		res := viewer.request(ctx, "POST", "/view", map[string]any{"conversation": c.ID, "have": map[string]any{"cursor": 0}, "list": true})
		pages.Go(func() {
			defer res.Body.Close()
			r := bufio.NewReader(res.Body)
			for {
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
			}
		})
	}
	with := measure("200 pages")
	cancel()
	pages.Wait()
	t.Logf("%v with none, %v with 200 pages", none, with)
	if with > 2*none {
		t.Errorf("turns are slower: %v, without pages %v", with, none)
	}
}
