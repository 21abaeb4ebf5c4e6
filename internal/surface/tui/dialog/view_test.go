package dialog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

var states = []struct {
	name string
	make func(t *theme.Theme) *Dialog
	keys string
}{
	{"command", func(t *theme.Theme) *Dialog { return NewApproval(t, command("rm -rf build && make install")) }, ""},
	{"command of several lines", func(t *theme.Theme) *Dialog {
		return NewApproval(t, command("for f in *; do\n\tcat \"$f\"\ndone | sort | uniq -c | sort -rn | head -20 # the most frequent lines of all files"))
	}, "down"},
	{"wide characters", func(t *theme.Theme) *Dialog {
		a := command("echo 漢字かな交じり文は折り返しが必要です👍🏽漢字かな交じり文は折り返しが必要です")
		a.Request.Reason, a.Request.Cwd = "ここに書き込みます。ここに書き込みます。ここに書き込みます。", "/家/プロジェクト"
		return NewApproval(t, a)
	}, ""},
	{"command behind blank lines", func(t *theme.Theme) *Dialog { return NewApproval(t, command(hidden)) }, ""},
	{"command behind blank lines, scrolled", func(t *theme.Theme) *Dialog { return NewApproval(t, command(hidden)) }, "pgdown"},
	{"second of three", func(t *theme.Theme) *Dialog {
		m := NewApproval(t, command("make"))
		m.SetPosition(2, 3)
		return m
	}, ""},
	{"patch", func(t *theme.Theme) *Dialog { return NewApproval(t, patch()) }, ""},
	{"patch scrolled", func(t *theme.Theme) *Dialog { return NewApproval(t, patch()) }, "pgdown"},
	{"no", func(t *theme.Theme) *Dialog { return NewApproval(t, command("make")) }, "n"},
	{"no with words", func(t *theme.Theme) *Dialog { return NewApproval(t, command("make")) }, "n u s e space 漢 字 space 👍"},
	{"esc", func(t *theme.Theme) *Dialog { return NewApproval(t, command("make")) }, "esc"},
	{"guarded", func(t *theme.Theme) *Dialog {
		m := NewApproval(t, command("make"))
		m.Guard(1)
		return m
	}, ""},
	{"nothing known", func(t *theme.Theme) *Dialog { return NewApproval(t, Approval{}) }, ""},
	{"long reason", func(t *theme.Theme) *Dialog {
		a := command("make")
		a.Request.Reason = strings.Repeat("because of this and that ", 20)
		return NewApproval(t, a)
	}, ""},
	{"undo", func(t *theme.Theme) *Dialog { return NewConfirm(t, undo()) }, ""},
	{"quit", func(t *theme.Theme) *Dialog {
		return NewConfirm(t, Confirm{
			Title:   "Quit?",
			Body:    []string{"2 background commands are still running:", "  1  npm run dev", "  2  tail -f log"},
			Choices: []Choice{{"quit", "q", "kill them and quit"}, {"stay", "esc", "stay"}},
			Default: 1,
		})
	}, ""},
}

// hidden is a command whose end nobody is meant to see.
var hidden = "echo hello" + strings.Repeat("\n", 40) + strings.Repeat("echo more\n", 30) + strings.Repeat(" \t\n", 200) + "rm -rf ~\n\n\n"

// However a command hides its end, and in whatever room, the end is seen.
// A name in the title or in a choice is shown whole: nothing prints over the rest.
func TestNamesAreShownWhole(t *testing.T) {
	c := Confirm{Title: "The MCP server bad\rgood asks", Choices: []Choice{{ID: "a", Key: "y", Label: "always allow delete\rread\n"}}}
	for _, size := range [][2]int{{80, 18}, {80, 4}} {
		got := drawFrame(t, NewConfirm(noColour, c), size[0], size[1])
		if !strings.Contains(got, "bad␍good") || !strings.Contains(got, "delete␍read␊") {
			t.Errorf("in %v:\n%s", size, got)
		}
	}
}

func TestTheEndOfACommandIsSeen(t *testing.T) {
	for _, s := range []string{
		hidden,
		"echo hello" + strings.Repeat("\n", 500) + "rm -rf ~",
		"echo hello" + strings.Repeat(" ", 5000) + "; rm -rf ~",
		"echo hello" + strings.Repeat("\u00a0\n", 500) + "rm -rf ~",
		"echo hello;" + strings.Repeat(" \\\n", 500) + "rm -rf ~",
	} {
		for _, size := range [][2]int{{40, 9}, {80, 18}, {120, 30}} {
			got := drawFrame(t, NewApproval(noColour, command(s)), size[0], size[1])
			if !strings.Contains(got, "rm -rf ~") {
				t.Errorf("%.20q in %v:\n%s", s, size, got)
			}
		}
	}
}

// Paging shows every line.
func TestPagingPassesNothingOver(t *testing.T) {
	var b strings.Builder
	for n := range 100 {
		fmt.Fprintf(&b, "line-%d;\n", n)
	}
	m := NewApproval(noColour, command(b.String()))
	seen := ""
	for range 60 {
		seen += drawFrame(t, m, 60, 16)
		press(m, "pgdown")
	}
	for n := range 100 {
		if !strings.Contains(seen, fmt.Sprintf("line-%d;", n)) {
			t.Errorf("line %d was not shown", n)
		}
	}
}

func drawFrame(t *testing.T, m *Dialog, width, height int) string {
	t.Helper()
	lines, cursor := m.View(width, height)
	tuitest.CheckWidth(t, lines, width)
	if len(lines) == 0 || len(lines) > height {
		t.Errorf("%d lines in a height of %d", len(lines), height)
	}
	return tuitest.Frame(lines, cursor, width)
}

func TestGoldenFrames(t *testing.T) {
	for _, size := range [][2]int{{40, 9}, {40, 20}, {80, 18}, {120, 30}} {
		var all strings.Builder
		for _, s := range states {
			m := s.make(noColour)
			m.View(size[0], size[1])
			press(m, strings.Fields(s.keys)...)
			fmt.Fprintf(&all, "== %s\n%s", s.name, drawFrame(t, m, size[0], size[1]))
		}
		tuitest.Golden(t, fmt.Sprintf("frames-%dx%d", size[0], size[1]), all.String())
	}
	m := NewApproval(theme.New(theme.Options{Dark: true, Color: true}), patch())
	tuitest.Golden(t, "frames-colour", drawFrame(t, m, 60, 24))
}

// The choices are what a person needs; they are seen on any screen.
func TestChoicesAreAlwaysSeen(t *testing.T) {
	for height := 1; height < 30; height++ {
		for _, width := range []int{40, 80} {
			for _, a := range []Approval{command("make"), patch()} {
				frame := drawFrame(t, NewApproval(noColour, a), width, height)
				for _, want := range []string{"y", "yes", "session", "no", "stop"} {
					if !strings.Contains(frame, want) {
						t.Fatalf("%d×%d: %q is missing in\n%s", width, height, want, frame)
					}
				}
				if height >= 6 && !strings.Contains(frame, "make") && !strings.Contains(frame, "app.go") {
					t.Errorf("%d×%d: what is asked about is missing in\n%s", width, height, frame)
				}
			}
		}
	}
}

func TestRandomKeysAndSizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	keys := strings.Fields("up down left right tab pgup pgdown home end j k space n n esc x 字 👍 backspace ctrl+w ctrl+j ctrl+c enter y a s")
	var m *Dialog
	for range longtest.Default(10_000, 4000) {
		if m == nil {
			m = states[rnd.IntN(len(states))].make(noColour)
			m.guard.on = false
		}
		width, height := rnd.IntN(130), rnd.IntN(30)
		lines, cursor := m.View(width, height)
		tuitest.CheckWidth(t, lines, width)
		if len(lines) == 0 || len(lines) > max(height, 1) {
			t.Fatalf("%d lines in a height of %d", len(lines), height)
		}
		if cursor != nil && (cursor.Y >= len(lines) || cursor.X >= max(width, 1)) {
			t.Fatalf("cursor %d,%d in %d×%d", cursor.X, cursor.Y, width, len(lines))
		}
		if rnd.IntN(30) == 0 {
			m.Update(tea.PasteMsg{Content: strings.Repeat("words\n", rnd.IntN(20))})
		}
		a := press(m, keys[rnd.IntN(len(keys))])
		if a.Done && m.approval && a.Decision == "" {
			t.Fatalf("done without a decision: %v", a)
		}
		if !a.Done && (a.Decision != "" || a.Choice != "") {
			t.Fatalf("decided and not done: %v", a)
		}
		if a.Decision == p.Cancelled {
			t.Fatal("clients do not cancel")
		}
		if a.Done {
			m = nil
		}
	}
}
