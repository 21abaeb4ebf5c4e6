package tui

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	p "github.com/fermata-agent/fermata/protocol"
)

// happens folds events as if they had come.
func (d *driver) happens(bodies ...p.Body) {
	b := client.Batch{From: d.m.conv.Feed}
	for _, body := range bodies {
		b.Events = append(b.Events, p.Event{Time: time.Now(), Body: body})
	}
	d.send(b)
}

// Lines are as wide as Bubble Tea takes them to be, which depends on the terminal.
func TestTerminalThatJoins(t *testing.T) {
	defer safetext.Join(false)
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.send(tea.WindowSizeMsg{Width: 20, Height: 24})
		d.say("यह निधि किसकी है बताओ", "enter")
		d.sees("› यह निधि किसकी है\n  बताओ")
		d.send(tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset})
		d.sees("› यह निधि किसकी है\n  बताओ")
		d.send(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset})
		d.sees("› यह निधि किसकी है बताओ")
		d.send(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeNotRecognized})
		d.sees("› यह निधि किसकी है\n  बताओ")
	})
}

// Whoever quits while background commands run is asked.
func TestQuitWithBackgroundCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.happens(&p.BackgroundStarted{ID: 1, Command: []string{"bash", "-lc", "npm start"}}, &p.BackgroundStarted{ID: 2, Command: []string{"top"}})
		d.sees("2 in background")
		d.say("/ps", "enter")
		d.sees("1  npm start", "2  top")
		d.press("esc", "ctrl+d")
		d.sees("2 background commands still running", "npm start")
		d.press("enter") // the default is to stay
		if d.over {
			t.Fatal("it has quit")
		}
		d.press("ctrl+c", "ctrl+c", "y")
		if !d.over {
			t.Error("it has not quit")
		}
	})
}

// The clock of a background command runs while nothing else does.
func TestBackgroundClock(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.happens(&p.BackgroundStarted{ID: 1, Command: []string{"top"}})
		before := d.m.spinner.Frame
		d.wait(10 * time.Second)
		if n := d.m.spinner.Frame - before; n < 8 || n > 12 {
			t.Errorf("the screen was drawn %d times in ten seconds", n)
		}
		d.sees("running · 10")
		d.happens(&p.BackgroundEnded{ID: 1, Reason: p.Completed})
		d.wait(2 * time.Second)
		before = d.m.spinner.Frame
		d.wait(10 * time.Second)
		if d.m.spinner.Frame != before {
			t.Error("the screen is drawn for nothing")
		}
	})
}

func TestKill(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.say("/kill 7", "enter")
		d.wait(time.Second)
		d.seesNot("is being stopped")
		if d.m.hint.Line(80, d.m.theme) == "" {
			t.Error("nothing is said")
		}
	})
}

// stuckEngine takes ops only when it is let.
type stuckEngine struct {
	engine.Engine
	stuck *atomic.Bool
	free  chan struct{}
}

func (s stuckEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	if _, stop := op.(p.Interrupt); !stop && s.stuck.Load() {
		<-s.free
	}
	return s.Engine.Submit(ctx, id, op)
}

// With a disk that is slow, what has been sent can be seen, and what has not
// left yet can be recalled; a stop does not wait.
func TestSlowEngine(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		s := stuckEngine{e, &atomic.Bool{}, make(chan struct{})}
		d := drive(t, e, func(o *Options) { o.Engine = s })
		d.say("one", "enter")
		r := e.Request()
		d.wait(time.Second)
		s.stuck.Store(true)
		d.say("two", "enter")
		d.say("three", "enter")
		d.sees("sending: two", "sending: three")
		d.press("up")
		d.seesNot("sending: three")
		if got := d.m.comp.Text(); got != "three" {
			t.Errorf("the composer holds %q", got)
		}
		d.press("esc")
		r.Stopped() // although a message is still on its way
		d.wait(time.Second)
		d.sees("interrupted after", "stopping…")
		s.stuck.Store(false)
		close(s.free)
		d.wait(5 * time.Second)
		d.sees("ready")
		e.Idle()
	})
}

// A conversation that is locked when it is chosen leaves the list on the screen.
func TestLockedWhenChosen(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		locked := conversationOf(e, 1)
		d := drive(t, e, func(o *Options) { o.Engine, o.Pick = lockedEngine{e, locked}, true })
		d.wait(time.Second)
		d.press("enter")
		d.wait(time.Second)
		d.sees("Conversations", "open in process 4242: use it there")
		d.press("esc")
		d.say("hello", "enter")
		e.Request().Answer("hi")
		d.wait(time.Second)
		d.sees("hi")
	})
}

// What this run was warned of is shown.
func TestNotices(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Notices = []string{"config.toml: what is colour?"} })
		d.sees("what is colour?")
		answered(d, "one", "yes")
		d.sees("what is colour?", "yes")
		id := conversationOf(e, 20)
		d = drive(t, e, resuming(id), func(o *Options) { o.Notices = []string{"config.toml: what is colour?"} })
		d.wait(time.Second)
		d.sees("answer 20.", "what is colour?") // after what was said before
		d.say("/new", "enter")
		d.wait(time.Second)
		d.seesNot("what is colour?")
	})
}

// That no new conversation could begin does not matter to one that goes on.
func TestResumeWithoutAProvider(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 1)
		d := drive(t, e, resuming(id), func(o *Options) {
			o.Settings = func(context.Context) (p.Settings, error) { return p.Settings{}, errors.New("no provider") }
		})
		d.wait(time.Second)
		d.sees("answer 1.")
		d.seesNot("no provider")
		d.say("/new", "enter")
		d.wait(time.Second)
		d.sees("no provider")
	})
}

// How far the earlier part is loaded can be seen.
func TestLoadingIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 200)
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		for range 200 { // up to what is loaded, and beyond
			d.step(press("pgup"))
			if d.m.conv.Loading != nil {
				break
			}
		}
		d.sees("loading…")
		d.wait(time.Second)
		if d.m.conv.From != 0 {
			t.Error("it was not loaded")
		}
		d.seesNot("loading")
	})
}
