package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/enginetest"
)

func inline(o *Options) { o.Config = &config.Config{Screen: config.Screen{Inline: true, Mouse: true}} }

// taken is what has gone to the scrollback since the last time.
func (d *driver) taken() string { return ansi.Strip(strings.Join(d.m.TakeAbove(), "\n")) }

func TestInline(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, inline)
		d.sees("fermata test")
		if v := d.m.View(); v.AltScreen || v.MouseMode != tea.MouseModeNone {
			t.Error("it takes the screen or the mouse")
		}
		d.say("one", "enter")
		r := e.Request()
		r.Delta("half of it")
		d.wait(time.Second)
		if got := d.taken(); !strings.Contains(got, "› one") || strings.Contains(got, "half") {
			t.Errorf("in the scrollback: %q", got)
		}
		d.sees("half of it", "working")
		d.seesNot("› one")
		r.Delta(" and the rest")
		d.send(tea.WindowSizeMsg{Width: 60, Height: 20})
		d.wait(time.Second)
		d.sees("half of it and the rest")
		d.press("esc")
		d.wait(time.Second)
		if got := d.taken(); strings.Count(got, "half of it and the rest") != 1 || !strings.Contains(got, "interrupted") || strings.Contains(got, "› one") {
			t.Errorf("in the scrollback: %q", got)
		}
		if got := d.taken(); got != "" {
			t.Errorf("again in the scrollback: %q", got)
		}
		if lines, _ := d.m.draw(time.Now()); len(lines) != 4 {
			t.Errorf("%d lines are left: %q", len(lines), lines)
		}
		d.press("pgup")
		d.sees("scroll with your terminal")
		d.say("/help", "enter")
		if !d.m.View().AltScreen || d.m.TakeAbove() != nil {
			t.Error("a page is not on the alternate screen")
		}
		d.press("esc")
		if d.m.View().AltScreen {
			t.Error("it stays on the alternate screen")
		}
	})
}

// A long item is shown whole on a page of its own, since what is in the scrollback cannot be unfolded.
func TestInlineUnfold(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, inline)
		d.press("ctrl+o")
		d.sees("nothing is folded")
		answered(d, "first line"+strings.Repeat("\nline", 40), "yes")
		d.taken()
		d.press("ctrl+o")
		d.sees("The last long item", "first line")
	})
}

// What is not finished when the program ends is left in the scrollback, once.
func TestInlineQuit(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, inline)
		answered(d, "one", "first answer")
		before := d.taken()
		shown := strings.Join(d.m.result().Shown, "\n")
		if strings.Count(before, "first answer") != 1 || strings.Contains(shown, "first answer") {
			t.Errorf("before %q, at the end %q", before, shown)
		}
	})
}
