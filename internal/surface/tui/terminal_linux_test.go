package tui

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	p "github.com/fermata-agent/fermata/protocol"
)

// quietEngine is an engine in which nothing happens.
type quietEngine struct{ engine.Engine }

func (quietEngine) Shutdown(context.Context) error { return nil }

func (quietEngine) Create(context.Context, p.Settings) (p.ConversationID, error) {
	return "conversation", nil
}

func (quietEngine) Submit(context.Context, p.ConversationID, p.Op) (p.Receipt, error) {
	return p.Receipt{Turn: 1, State: p.TakenStarted}, nil
}

func (quietEngine) Subscribe(context.Context, p.ConversationID, p.Cursor) iter.Seq2[p.Event, error] {
	return func(func(p.Event, error) bool) { panic("a bug of the engine") }
}

func (quietEngine) List(context.Context, engine.ListOptions) (engine.Page, error) {
	panic("a bug of the list")
}

// output is what a terminal was sent.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) has(part string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), part)
}

// last is where a part was sent for the last time.
func (o *output) last(part string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.LastIndex(o.text.String(), part)
}

// eventually waits until cond is true.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Minute) // the machine may be busy
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// A terminal is one for a test, with what was sent to it.
type testTerminal struct {
	t           *testing.T
	master, tty *os.File
	sent        output
	before      *unix.Termios
}

func newTestTerminal(t *testing.T) *testTerminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be had here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	x := &testTerminal{t: t, master: master, tty: tty, before: termios(t, tty)}
	read := make(chan struct{})
	go func() { // ends with the terminal
		defer close(read)
		_, _ = io.Copy(&x.sent, master)
	}()
	t.Cleanup(func() {
		tty.Close()
		master.Close()
		<-read
	})
	return x
}

func termios(t *testing.T, f *os.File) *unix.Termios {
	t.Helper()
	got, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// run shows the program until it ends. While it is there, do is done.
func (x *testTerminal) run(ctx context.Context, do func(), change ...func(*Options)) (Result, error) {
	x.t.Helper()
	o := Options{
		Options: client.Options{Engine: quietEngine{}, Settings: func(context.Context) (p.Settings, error) { return p.Settings{Model: "puppet"}, nil }},
		Dir:     "/w", In: x.tty, Out: x.tty, Env: []string{"TERM=xterm-256color"}, Color: true, Dark: true,
	}
	for _, f := range change {
		f(&o)
	}
	go func() { // ends with the test, at the latest
		eventually(x.t, "the screen is there", func() bool { return x.sent.has("puppet") })
		do()
	}()
	return Run(ctx, o)
}

func (x *testTerminal) press(keys string) {
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Error(err)
	}
}

// restored checks that the terminal is what it was.
func (x *testTerminal) restored() {
	x.t.Helper()
	if d := cmp.Diff(x.before, termios(x.t, x.tty)); d != "" {
		x.t.Errorf("its settings are others (-want +got):\n%s", d)
	}
	for on, off := range map[string]string{
		"\x1b[?1049h": "\x1b[?1049l", // the other screen
		"\x1b[?25l":   "\x1b[?25h",   // the cursor
		"\x1b[?1002h": "\x1b[?1002l", // the mouse
		"\x1b[?2004h": "\x1b[?2004l", // pastes in brackets
	} {
		eventually(x.t, "the terminal is sent "+strconv.Quote(off), func() bool { return x.sent.last(off) >= x.sent.last(on) })
	}
	if !x.sent.has("\x1b[?1049h") {
		x.t.Error("there was no screen")
	}
}

func TestTerminalAfterQuitting(t *testing.T) {
	x := newTestTerminal(t)
	if _, err := x.run(t.Context(), func() { x.press("\x03\x03") }); err != nil {
		t.Error(err)
	}
	x.restored()
}

func TestTerminalAfterASignal(t *testing.T) {
	x := newTestTerminal(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped by SIGTERM")
	if _, err := x.run(ctx, func() { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	x.restored()
}

// Wherever a bug shows, the terminal is restored.
func TestTerminalAfterAPanic(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(*testTerminal)
		change func(*Options)
	}{
		"in a command": {func(x *testTerminal) { x.press("/resume\r") }, func(*Options) {}},
		"in a batch of commands": {func(x *testTerminal) { x.press("/new\r") }, func(o *Options) {
			n := 0
			o.Branch = func(context.Context, string) string {
				if n++; n > 1 {
					panic("a bug of git")
				}
				return "main"
			}
		}},
		"behind the feed": {func(x *testTerminal) { x.press("hello\r") }, func(*Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestTerminal(t)
			r, err := x.run(t.Context(), func() { tt.do(x) }, tt.change)
			if !errors.Is(err, terminal.ErrPanic) {
				t.Errorf("got %v", err)
			}
			x.restored()
			if name == "behind the feed" && !slices.Contains(r.Lines, "to resume: fermata resume conversation") {
				t.Errorf("it does not say where the conversation is: %q", r.Lines)
			}
		})
	}
}
