package draw

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

func look(p *Page, width, height int) string {
	return ansi.Strip(strings.Join(p.View(width, height), "\n"))
}

// Text obeys nobody.
func TestHostileText(t *testing.T) {
	p := NewTextPage(theme.New(theme.Options{}), "Title", "dir \x1b[31mred\x1b[2J\nnext")
	if got := strings.Join(p.View(80, 5), "\n"); !strings.Contains(got, "\ndir ␛[31mred␛[2J\nnext\n") {
		t.Errorf("got %q", got)
	}
}

func TestPage(t *testing.T) {
	p := NewTextPage(theme.New(theme.Options{}), "Title", strings.Repeat("line\n", 50)+"last")
	for _, step := range []struct {
		keys string
		want string
	}{
		{"", "lines 1–22 of 51"},
		{"up k home", "lines 1–22 of 51"},
		{"down j pgdown", "lines 25–46 of 51"},
		{"end", "lines 30–51 of 51"},
		{"down", "lines 30–51 of 51"},
		{"k up b", "lines 6–27 of 51"},
		{"g", "lines 1–22 of 51"},
		{"G", "last"},
		{"x", "last"},
		{"g space", "lines 23–44 of 51"},
	} {
		for _, k := range strings.Fields(step.keys) {
			if p.Update(tuitest.Press(k)) {
				t.Fatalf("%s leaves it", k)
			}
		}
		if got := look(p, 80, 24); !strings.Contains(got, step.want) || !strings.Contains(got, "Title") {
			t.Errorf("after %q there is no %q:\n%s", step.keys, step.want, got)
		}
	}
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	p.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if got := look(p, 80, 24); !strings.Contains(got, "lines 20–41 of 51") {
		t.Errorf("after the wheel:\n%s", got)
	}
	for _, k := range []string{"esc", "q", "enter"} {
		if !p.Update(tuitest.Press(k)) {
			t.Errorf("%s does not leave it", k)
		}
	}
}

// A page is drawn again when the width changes, and fits every size.
func TestSizes(t *testing.T) {
	drawn := 0
	p := NewPage(theme.New(theme.Options{}), "A long title", func(width int) []string {
		drawn++
		return []string{strings.Repeat("x", width), "y"}
	})
	for _, width := range []int{80, 80, 40, 5, 1} {
		for _, height := range []int{24, 3, 2, 1} {
			lines := p.View(width, height)
			tuitest.CheckWidth(t, lines, width)
			if len(lines) != height {
				t.Errorf("%d lines on a screen of %d×%d", len(lines), width, height)
			}
		}
	}
	if drawn != 4 {
		t.Errorf("it was drawn %d times", drawn)
	}
}

func TestNote(t *testing.T) {
	p := NewTextPage(theme.New(theme.Options{}), "Title", "text")
	if got := look(p, 80, 5); !strings.Contains(got, "Esc goes back") {
		t.Error(got)
	}
	p.SetNote("something else")
	if got := look(p, 80, 5); !strings.Contains(got, "something else") {
		t.Error(got)
	}
}
