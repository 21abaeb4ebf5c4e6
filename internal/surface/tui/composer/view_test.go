package composer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

// states are the composer in every state that looks different.
var states = []struct {
	name  string
	setUp func(*desk)
}{
	{"empty", func(*desk) {}},
	{"empty while a turn runs", func(d *desk) { d.c.SetBusy(true) }},
	{"without the focus", func(d *desk) { d.write("one"); d.c.Blur() }},
	{"one line", func(d *desk) { d.write("fix the parser").press("alt+b") }},
	{"several lines", func(d *desk) { d.write("fix the parser:\n\n- a\n- b").press("up", "up") }},
	{"wrapped", func(d *desk) {
		d.write("please look at the function that splits words, it gets-averylongwordthatdoesnotfitanywhereatallbecauseithasnospaces wrong and the rest of it, too")
	}},
	{"wide characters", func(d *desk) {
		d.write("漢字かな交じり文は折り返しが必要です。👍🏽 e\u0301 ").paste("👨‍👩‍👧 🇩🇪 ok").press("left")
	}},
	{"tab and emoji", func(d *desk) { d.paste("a\tb\n\t👍\tc").press("left") }},
	{"taller than its place", func(d *desk) { d.paste(strings.Repeat("line\n", 9)).press("up", "up", "up") }},
	{"folded paste", func(d *desk) { d.write("see ").paste(strings.Repeat("x\n", 120)).write(" and ").paste("/tmp/shot.png") }},
	{"shell", func(d *desk) { d.write("!go test ./...") }},
	{"commands", func(d *desk) { d.write("/").press("down") }},
	{"command typed", func(d *desk) { d.write("/mo") }},
	{"files", func(d *desk) { d.write("see @main").press("down") }},
	{"wide files", func(d *desk) { d.write("@漢") }},
	{"search", func(d *desk) { d.press("ctrl+r") }},
	{"search found", func(d *desk) { d.press("ctrl+r").write("parser").press("ctrl+r") }},
	{"search found nothing", func(d *desk) { d.press("ctrl+r").write("nosuch") }},
	{"busy with text", func(d *desk) { d.c.SetBusy(true); d.write("and the tests") }},
}

// frame draws the popup and the box.
func (d *desk) frame(width, height int) string {
	d.t.Helper()
	popup := d.c.Popup(width)
	lines, cursor := d.c.View(width, height)
	tuitest.CheckWidth(d.t, popup, width)
	tuitest.CheckWidth(d.t, lines, width)
	if len(lines) > height {
		d.t.Errorf("%d lines, want %d at most", len(lines), height)
	}
	return tuitest.Frame(popup, nil, width) + tuitest.Frame(lines, cursor, width)
}

func TestGoldenFrames(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		var all strings.Builder
		for _, s := range states {
			d := newDesk(t, "fix the parser of\nthe second file", "write a parser", "unrelated")
			d.c.View(width, 6) // Up and Down need the width
			s.setUp(d)
			fmt.Fprintf(&all, "== %s\n%s", s.name, d.frame(width, 6))
		}
		tuitest.Golden(t, fmt.Sprintf("frames-%d", width), all.String())
	}
}

func TestGoldenFramesInColour(t *testing.T) {
	var all strings.Builder
	for _, s := range states {
		d := newDesk(t, "write a parser")
		d.c.theme = theme.New(theme.Options{Dark: true, Color: true})
		s.setUp(d)
		fmt.Fprintf(&all, "== %s\n%s", s.name, d.frame(60, 6))
	}
	tuitest.Golden(t, "frames-colour", all.String())
}

func TestTinyScreens(t *testing.T) {
	for width := range 25 {
		for height := range 5 {
			for _, s := range states {
				d := newDesk(t, "write a parser")
				s.setUp(d)
				popup := d.c.Popup(width)
				lines, cursor := d.c.View(width, height)
				tuitest.CheckWidth(t, popup, width)
				tuitest.CheckWidth(t, lines, width)
				if len(lines) == 0 || len(lines) > max(height, 1) {
					t.Errorf("%s: %d lines in a height of %d", s.name, len(lines), height)
				}
				if cursor != nil && (cursor.X > max(width-1, 0) || cursor.Y >= len(lines)) {
					t.Errorf("%s: cursor at %d,%d in %d×%d", s.name, cursor.X, cursor.Y, width, height)
				}
			}
		}
	}
}

var anyKeys = []string{
	"left", "right", "up", "down", "home", "end", "alt+b", "alt+f", "ctrl+w", "alt+d", "ctrl+k", "ctrl+u", "ctrl+y",
	"backspace", "backspace", "delete", "ctrl+t", "ctrl+_", "alt+Z", "ctrl+j", "shift+enter", "alt+enter", "enter", "tab",
	"ctrl+s", "ctrl+r", "ctrl+g", "esc", "ctrl+p", "ctrl+n", "pgup", "ctrl+c", "ctrl+d", "ctrl+home", "ctrl+end",
}

var anyText = []string{
	"a", "B", "space", "/", "@", "!", "m", "字", "👍", "\u0301", "👨‍👩‍👧", "\t", "e", "r", "s", "-", "🇩", "🇪", "\u200d",
}

func TestRandomKeysPastesAndResizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 3))
	d := newDesk(t, "one", "two\nlines", strings.Repeat("long entry ", 300))
	width, height := 80, 6
	var pending []tea.Msg
	for i := range 10_000 {
		switch n := rnd.IntN(100); {
		case n < 50:
			d.press(anyText[rnd.IntN(len(anyText))])
		case n < 85:
			d.press(anyKeys[rnd.IntN(len(anyKeys))])
		case n < 90:
			d.paste(strings.Repeat(anyText[rnd.IntN(len(anyText))]+"\n", rnd.IntN(30)))
		case n < 92:
			d.paste("/tmp/a.png")
		case n < 94:
			d.c.SetText(strings.Repeat("some words\n", rnd.IntN(6)))
		case n < 95:
			d.c.SetBusy(rnd.IntN(2) == 0)
		case n < 97:
			width, height = rnd.IntN(130), rnd.IntN(12)
		case n < 98:
			_, cmd := d.c.Update(tuitest.Press("@"))
			if cmd != nil {
				pending = append(pending, cmd())
			}
		default:
			for _, msg := range pending {
				d.update(msg)
			}
			pending = nil
		}
		popup := d.c.Popup(width)
		lines, cursor := d.c.View(width, height)
		tuitest.CheckWidth(t, popup, width)
		tuitest.CheckWidth(t, lines, width)
		if len(lines) == 0 || len(lines) > max(height, 1) || len(popup) > popupLines {
			t.Errorf("%d lines and a popup of %d in a height of %d", len(lines), len(popup), height)
		}
		if cursor == nil || cursor.X < 0 || cursor.X > max(width-1, 0) || cursor.Y >= len(lines) {
			t.Errorf("cursor %v in %d×%d", cursor, width, len(lines))
		}
		if t.Failed() {
			t.Fatalf("after %d steps, text %q", i, d.c.buf.Text())
		}
	}
}

func BenchmarkKeyIn100KB(b *testing.B) {
	for _, tc := range []struct{ name, text string }{
		{"lines", strings.Repeat("a line of the usual length, with words in it\n", 2280)},
		{"wide", strings.Repeat("漢字かな交じり文、漢字かな交じり文、\n", 1850)},
		{"oneline", strings.Repeat("word ", 20_000)},
	} {
		b.Run(tc.name, func(b *testing.B) {
			c := New(theme.New(theme.Options{}), Options{Commands: testCommands})
			c.SetText(tc.text)
			c.View(80, 8)
			keys := []tea.KeyPressMsg{tuitest.Press("x"), tuitest.Press("backspace")}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				c.Update(keys[i%2])
				c.View(80, 8)
				i++
			}
		})
	}
}
