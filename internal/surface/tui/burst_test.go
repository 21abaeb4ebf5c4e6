package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/enginetest"
)

// types presses a key for each character, so much time apart.
func (d *driver) types(text string, apart time.Duration) {
	for _, r := range text {
		switch r {
		case '\r':
			d.step(press("enter"))
		case '\t':
			d.step(press("tab"))
		default:
			d.step(tea.KeyPressMsg{Text: string(r), Code: r})
		}
		if apart > 0 {
			d.wait(apart)
		}
	}
}

func unbracketed(o *Options) { o.Unbracketed = true }

// What a terminal types that knows no brackets is neither sent nor run line by line.
func TestPasteAsKeys(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, unbracketed)
		d.wait(time.Second)
		d.types("!rm x\r\r\tif @a\r/quit\rend", 0)
		d.wait(time.Second)
		d.press("tab") // which does nothing here
		if got, want := d.m.comp.Text(), "!rm x\n\n\tif @a\n/quit\nend"; got != want || d.over || d.m.Busy() {
			t.Errorf("the composer holds %q, want %q; over %v", got, want, d.over)
		}
		d.m.comp.SetText("")
		d.types("!rm x\rls\r", 0) // whole lines, as most pastes are
		d.wait(time.Second)
		if got, want := d.m.comp.Text(), "!rm x\nls\n"; got != want || d.m.Busy() {
			t.Errorf("the composer holds %q, want %q", got, want)
		}
		d.m.comp.SetText("")
		d.types("one\rtwo", 0)
		d.press("right", "enter") // a key that no paste has: somebody is there
		e.Request().Answer("yes")
		d.wait(time.Second)
		d.sees("› one", "yes")
	})
}

// A script that types a message and Enter at once sends it, a moment later; and
// whatever key comes then comes after it.
func TestEnterBehindABurst(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, unbracketed)
		d.wait(time.Second)
		d.types("hello\r", 0)
		d.settle()
		if d.m.comp.Empty() {
			t.Error("it did not wait whether more comes")
		}
		d.wait(20 * time.Millisecond)
		e.Request().Answer("yes")
		d.wait(time.Second)
		d.sees("› hello", "yes")

		d.types("again\r", 0)
		d.press("ctrl+c")
		d.wait(time.Second)
		d.sees("› again", "interrupted after")
	})
}

// People are not kept waiting, and a Tab of theirs is a Tab.
func TestTypedEnter(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, unbracketed)
		d.wait(time.Second)
		d.types("hello", 20*time.Millisecond)
		d.press("enter")
		if !d.m.comp.Empty() {
			t.Error("it was not sent")
		}
		r := e.Request()
		d.types("later\t", 20*time.Millisecond)
		d.wait(time.Second)
		d.types("at once\t", 0) // a script
		d.wait(time.Second)
		d.sees("queued: later", "queued: at once")
		r.Answer("yes")
		e.Request().Answer("yes")
		e.Request().Answer("yes")
	})
}
