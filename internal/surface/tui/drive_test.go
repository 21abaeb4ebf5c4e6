package tui

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

func init() { time.Local = time.UTC } // the screen shows the time of day

// guardTime is how long no key must have been pressed before a dialog takes keys.
const guardTime = 400 * time.Millisecond

// A driver runs the model as the program would, without a terminal.
type driver struct {
	t      *testing.T
	e      *enginetest.Engine
	m      *model
	msgs   chan tea.Msg
	over   bool // it has quit
	width  int
	height int
}

// memory is a history that is forgotten.
type memory struct {
	mu    sync.Mutex
	added []string
}

func (h *memory) Load() ([]string, error) { return nil, nil }

func (h *memory) Add(s string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.added = append(h.added, s)
	return nil
}

// drive starts a program on an engine. It must be called in a bubble.
func drive(t *testing.T, e *enginetest.Engine, change ...func(*Options)) *driver {
	o := Options{
		Options: client.Options{Engine: e, Settings: func(context.Context) (p.Settings, error) {
			return p.Settings{Cwd: "/w", Model: "puppet", Provider: "test", Sandbox: p.SandboxPolicy{Mode: p.SandboxReadOnly}, Approval: p.ApprovalOnRequest}, nil
		}},
		Environment: commands.Environment{Version: "test"}, Dir: "/w", Dark: true,
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		time.Sleep(time.Minute) // commands that wait for a while cannot be stopped
	})
	d := &driver{t: t, e: e, m: newModel(ctx, o), msgs: make(chan tea.Msg, 1<<16), width: 80, height: 24}
	d.run(d.m.Init())
	d.send(tea.WindowSizeMsg{Width: d.width, Height: d.height})
	return d
}

// run carries out a command, as the program does: beside.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		if msg := cmd(); msg != nil {
			d.msgs <- msg
		}
	}()
}

// step gives the model one message.
func (d *driver) step(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
		return
	case tea.QuitMsg:
		d.over = true
		return
	case tea.WindowSizeMsg:
		d.width, d.height = max(1, msg.Width), max(1, msg.Height)
	}
	if d.over {
		return
	}
	_, cmd := d.m.Update(msg)
	d.check()
	d.run(cmd)
}

// check looks at what must be true of every frame.
func (d *driver) check() {
	lines, cursor := d.m.draw(time.Now())
	if len(lines) != d.height && !d.m.inline() || len(lines) > d.height {
		d.t.Fatalf("%d lines on a screen of %d", len(lines), d.height)
	}
	bubbleTea := ansi.WcWidth // what it cuts by
	if safetext.Joined() {
		bubbleTea = ansi.GraphemeWidth
	}
	for i, line := range lines {
		if w := bubbleTea.StringWidth(line); w > d.width {
			d.t.Fatalf("line %d is %d wide on a screen of %d: %q", i, w, d.width, line)
		}
	}
	bottom := d.height
	if d.m.overlay == nil {
		bottom-- // for the status line
	}
	if cursor != nil && (cursor.X < 0 || cursor.X >= max(1, d.width)+1 || cursor.Y < 0 || cursor.Y >= bottom) {
		d.t.Fatalf("the cursor is at %d,%d on a screen of %d×%d", cursor.X, cursor.Y, d.width, d.height)
	}
}

// send gives messages and lets everything happen that does not need time.
func (d *driver) send(msgs ...tea.Msg) {
	d.t.Helper()
	for _, msg := range msgs {
		d.step(msg)
	}
	d.settle()
}

func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			d.step(msg)
			continue
		default:
		}
		return
	}
}

// wait lets time pass.
func (d *driver) wait(t time.Duration) {
	for end := time.Now().Add(t); time.Now().Before(end); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
		d.settle()
	}
}

// press presses keys, such as "ctrl+c", one after the other.
func (d *driver) press(keys ...string) {
	d.t.Helper()
	for _, k := range keys {
		d.send(tuitest.Press(k))
	}
}

// answer presses the letter of an answer, and waits until it counts.
func (d *driver) answer(letter string) {
	d.t.Helper()
	d.press(letter)
	d.wait(guardTime)
}

// say types a text and a key, and lets a frame pass.
func (d *driver) say(text, key string) {
	d.t.Helper()
	for _, r := range text {
		k := string(r)
		if r == ' ' {
			k = "space"
		}
		d.step(tuitest.Press(k))
	}
	d.press(key)
	d.wait(2 * client.FrameTime)
}

// screen is what is to be seen.
func (d *driver) screen() string {
	lines, _ := d.m.draw(time.Now())
	for i, line := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(line), " ")
	}
	return strings.Join(lines, "\n")
}

func (d *driver) sees(parts ...string) {
	d.t.Helper()
	for _, part := range parts {
		if got := d.screen(); !strings.Contains(got, part) {
			d.t.Fatalf("the screen does not show %q:\n%s", part, got)
		}
	}
}

func (d *driver) seesNot(parts ...string) {
	d.t.Helper()
	for _, part := range parts {
		if got := d.screen(); strings.Contains(got, part) {
			d.t.Fatalf("the screen shows %q:\n%s", part, got)
		}
	}
}

// bubble runs a test with an engine in a bubble of time.
func bubble(t *testing.T, f func(t *testing.T, e *enginetest.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, enginetest.New(t, enginetest.Options{})) })
}

func resuming(id p.ConversationID) func(*Options) {
	return func(o *Options) { o.Resume = id }
}

var _ engine.Engine = (*enginetest.Engine)(nil)
