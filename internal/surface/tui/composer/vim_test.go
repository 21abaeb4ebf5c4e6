package composer

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

func TestVimKeys(t *testing.T) {
	c := New(theme.New(theme.Options{}), Options{Vim: true})
	press := func(keys ...string) (a Action) {
		for _, k := range keys {
			a, _ = c.Update(tuitest.Press(k))
		}
		return a
	}
	shows := func(want string) {
		t.Helper()
		lines, _ := c.View(60, 5)
		if got := ansi.Strip(strings.Join(lines, "\n")); !strings.Contains(got, want) {
			t.Errorf("the box does not show %q:\n%s", want, got)
		}
	}
	shows("─ insert ─")
	if press("esc") != nil {
		t.Error("with nothing written Esc is not the application's")
	}
	press("a", "b", "c", "esc")
	shows("─ normal ─")
	press("0", "x", "p")
	if got := c.Text(); got != "bac" {
		t.Errorf("got %q", got)
	}
	if press("esc") != nil {
		t.Error("in normal mode Esc is not the application's")
	}
	press("A", "!")
	shows("─ insert ─")
	if a, ok := press("esc", "enter").(Submit); !ok || a.Text != "bac!" {
		t.Errorf("sent %+v", a)
	}
	shows("─ insert ─")
	press("x", "esc", "x")
	if press("/"); c.Text() != "/" {
		t.Errorf("a command cannot be typed: %q", c.Text())
	}
}
