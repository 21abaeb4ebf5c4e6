package tui

import (
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

// frame is the screen with its borders and the cursor.
func (d *driver) frame() string {
	lines, cursor := d.m.draw(time.Now())
	for i, l := range lines {
		lines[i] = ansi.Strip(l)
	}
	return tuitest.Frame(lines, cursor, d.width)
}

var idForm = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]*`)

// The main screens at three sizes.
func TestFrames(t *testing.T) {
	for name, size := range map[string][2]int{"80x24": {80, 24}, "40x10": {40, 10}, "120x30": {120, 30}} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			var out strings.Builder
			shot := func(d *driver, what string) {
				text := idForm.ReplaceAllStringFunc(d.frame(), func(id string) string { return strings.Repeat("x", len(id)) })
				out.WriteString("== " + what + "\n" + text + "\n")
			}
			d := drive(t, e)
			d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			shot(d, "welcome")
			d.say("find the 漢字 in this", "enter")
			r := e.Request()
			r.Delta("I look for *them*:\n\n- one\n- two")
			d.wait(2 * time.Second)
			d.say("also in the tests", "enter")
			d.say("then commit, and say in the message why it was wrong before", "tab")
			d.wait(time.Second)
			shot(d, "working, two messages wait")
			d.step(press("esc"))
			shot(d, "stopping")
			d.wait(time.Second)
			shot(d, "stopped")
			d.m.comp.SetText("")
			asked(d, "rm", "-rf", "build")
			shot(d, "asking")
			d.press("y", "enter")
			run := e.Run()
			run.Print("removing\n")
			d.wait(time.Second)
			shot(d, "running")
			run.Return(p.ToolOutput{Output: "removed", Command: &p.CommandResult{Output: "removing\nremoved\n", Elapsed: time.Second}})
			e.Request().Answer("It is gone.")
			d.wait(time.Second)
			d.press("pgup")
			shot(d, "scrolled up")
			d.press("end", "ctrl+c")
			shot(d, "a hint")
			d.press("esc")
			d.say("/status", "enter")
			shot(d, "status")
			tuitest.Golden(t, "frames_"+name, out.String())
		})
	}
}

// Without colours the screen has none, and the selection can still be seen.
func TestNoColor(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Color = false })
		answered(d, "one", "# A title\n\n`code` and **more**\n\n```go\nfunc f() {}\n```")
		d.say("/approvals", "enter")
		if got := colorForm.FindString(d.m.View().Content); got != "" {
			t.Errorf("there is a colour: %q", got)
		}
		if !strings.Contains(d.m.View().Content, "\x1b[7m") {
			t.Error("the selection cannot be seen")
		}
		d.press("esc")
		if got := colorForm.FindString(d.m.View().Content); got != "" {
			t.Errorf("there is a colour: %q", got)
		}
	})
}

// colorForm is an escape code that sets a colour.
var colorForm = regexp.MustCompile(`\x1b\[([0-9;]*;)?([349][0-7]|10[0-7]|[34]8;[0-9;]*)(;[0-9;]*)?m`)

func TestColorsChange(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Color = true })
		answered(d, "one", "# Title\n\n`code`\n\n```go\nfunc f() { return \"x\" }\n```")
		dark := d.m.View().Content
		d.send(tea.BackgroundColorMsg{Color: ansi.BrightWhite})
		if light := d.m.View().Content; light == dark {
			t.Error("light is as dark")
		}
		d.send(tea.ColorProfileMsg{})
		if got := colorForm.FindString(d.m.View().Content); got != "" {
			t.Errorf("a terminal without colours gets %q", got)
		}
	})
}

func TestPlace(t *testing.T) {
	m := &model{o: Options{Home: "/home/me"}}
	for dir, want := range map[string]string{
		"/home/me": "~", "/home/me/src": "~/src", "/home/meto": "/home/meto", "": "",
		"/a/very/long/path/to/some/place/below": "…long/path/to/some/place/below",
	} {
		if got := m.place(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if m.branch = "main"; m.place("/x") != "/x (main)" || m.place("") != "" {
		t.Error("the branch is not there, or without a directory")
	}
}

func TestPager(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.m.ShowPage(draw.NewTextPage(d.m.theme, "Title", strings.Repeat("line\n", 50)+"last"))
		d.sees("Title", "lines 1–22 of 51", "Esc goes back")
		d.press("down", "j", "pgdown")
		d.sees("lines 25–46 of 51")
		d.press("end")
		d.sees("last", "lines 30–51 of 51")
		d.press("k", "up", "b")
		d.sees("lines 6–27 of 51")
		d.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown}, tea.MouseWheelMsg{Button: tea.MouseWheelUp})
		d.sees("lines 6–27 of 51")
		d.press("g")
		d.sees("lines 1–22 of 51")
		d.press("G", "space")
		d.send(tea.WindowSizeMsg{Width: 80, Height: 60})
		d.sees("line", "last")
		d.press("x", "q")
		d.sees("ready")
	})
}

// The wheel scrolls, and Esc goes back to the end.
func TestScrolling(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		id := conversationOf(e, 40)
		d := drive(t, e, resuming(id))
		d.wait(time.Second)
		d.seesNot("more lines below")
		d.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
		d.sees("more lines below")
		d.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown}, tea.MouseWheelMsg{Button: tea.MouseWheelDown})
		d.seesNot("more lines below")
		d.press("pgup")
		d.sees("more lines below")
		d.press("esc")
		d.seesNot("more lines below")
		d.press("home")
		d.sees("question 1.")
		d.say("more", "enter") // whoever sends wants to see
		d.sees("› more")
		e.Request().Answer("yes")
	})
}
