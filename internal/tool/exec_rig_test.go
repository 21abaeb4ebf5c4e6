package tool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// A termHost is a host for commands that outlive their call: they write from
// another goroutine.
type termHost struct {
	mu      sync.Mutex
	shown   []byte // as output of the call
	later   string // as output of the background command
	events  []protocol.Body
	jobs    []Background
	noKeep  error
	noEvent error
	onShow  func(all string)
}

func (h *termHost) Write(_ protocol.DeltaKind, text string) {
	h.mu.Lock()
	if cap(h.shown)-len(h.shown) < len(text) {
		h.shown = slices.Grow(h.shown, len(h.shown)+len(text)) // twice as much: there may be many megabytes
	}
	h.shown = append(h.shown, text...)
	h.mu.Unlock()
	if h.onShow != nil {
		h.onShow(string(h.shown))
	}
}

func (h *termHost) Record(_ context.Context, b protocol.Body) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noEvent == nil {
		h.events = append(h.events, b)
	}
	return h.noEvent
}

func (h *termHost) Keep(_ context.Context, b protocol.BackgroundStarted, job Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noKeep != nil {
		return 0, nil, h.noKeep
	}
	h.jobs = append(h.jobs, job)
	b.ID = protocol.BackgroundID(len(h.jobs))
	h.events = append(h.events, &b)
	return b.ID, func(_ protocol.DeltaKind, text string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.later += text
	}, nil
}

func (h *termHost) said() (shown, later string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.shown), h.later
}

// eventually waits until cond holds. The limit is only there to fail.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("did not come true: %s", what)
		}
	}
}

// terminal returns exec_command; what it left is ended with the test.
func terminal(t *testing.T) *Exec {
	t.Helper()
	return &Exec{Shell: shell(t)}
}

// on is a call of exec_command on a terminal. Its shell reads no profile, which may be slow.
func on(h *termHost, dir, cmd string, more ...params) Call {
	a := params{"cmd": cmd, "login": false, "tty": true}
	for _, m := range more {
		for k, v := range m {
			a[k] = v
		}
	}
	c := call(h, dir, a)
	c.Name = "exec_command"
	return c
}

// typing is a call of write_stdin on the first background command.
func typing(h *termHost, chars string, yieldMS int) Call {
	c := call(h, "/", params{"session_id": 1, "chars": chars, "yield_time_ms": yieldMS})
	c.Background = map[protocol.BackgroundID]Background{}
	for i, job := range h.jobs {
		c.Background[protocol.BackgroundID(i+1)] = job
	}
	return c
}

// background starts a command that goes on after its call, and is ended with
// the test.
func background(t *testing.T, h *termHost, cmd string) Result {
	t.Helper()
	res := terminal(t).Run(t.Context(), on(h, t.TempDir(), cmd, params{"yield_time_ms": 0}))
	if len(h.jobs) != 1 {
		t.Fatalf("not a background command: %+v", res.Output)
	}
	job := h.jobs[0]
	t.Cleanup(func() {
		job.Stop(context.Canceled)
		job.Wait()
	})
	return res
}

// told is what a report tells of the output.
func told(t *testing.T, out protocol.ToolOutput) (state, text string) {
	t.Helper()
	head, text, ok := strings.Cut(out.Output, "\nOutput:\n")
	if !ok {
		t.Fatalf("not a report: %q", out.Output)
	}
	lines := strings.Split(head, "\n")
	return lines[len(lines)-1], text
}

// readUntil reads until what was printed since contains want, or the command
// has ended, and returns all of it.
func readUntil(t *testing.T, h *termHost, want string) (all, state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the command prints %q", want), func() bool {
		out := WriteStdin{}.Run(t.Context(), typing(h, "", 20)).Output
		var text string
		state, text = told(t, out)
		all += text
		return strings.Contains(all, want)
	})
	return all, state
}

// newMark returns a number that the processes of one test carry in their
// arguments, and no other.
func newMark() string { return fmt.Sprint(int64(1e15) + rand.Int64N(8e15)) }

// marked lists the arguments of the processes that carry the mark.
func marked(t *testing.T, mark string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(names) == 0 {
		t.Skip("there is no /proc")
	}
	for _, name := range names {
		text, _ := os.ReadFile(name) // it may be gone
		if strings.Contains(string(text), mark) && name != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// noneMarked fails if something with the mark lives.
func noneMarked(t *testing.T, mark string) {
	t.Helper()
	if found := marked(t, mark); len(found) > 0 {
		t.Errorf("still alive: %q", found)
	}
}

func (h *termHost) Output(_ context.Context, call protocol.CallID) (string, error) {
	return "", errors.New("no output of " + call.String())
}
