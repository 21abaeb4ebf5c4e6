package composer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

// Whatever is pasted, folded or not, into whatever text: it is sent as it was,
// but for control characters, and never reaches the screen raw.
func TestAnyPasteIsSentWhole(t *testing.T) {
	pieces := []string{"word ", "漢字", "\n", "\r\n", "\x1b[31m", "\x1b]0;t\x07", "\x00", "\xff", "👨‍👩‍👧", "e\u0301", "\t", "\u202e", "\U00108000", "x"}
	for seed := range uint64(longtest.Default(400, 150)) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		d := newDesk(t)
		d.write("<")
		want := "<"
		for range 1 + rnd.IntN(3) {
			var paste strings.Builder
			for range rnd.IntN(40) {
				paste.WriteString(strings.Repeat(pieces[rnd.IntN(len(pieces))], 1+rnd.IntN(1+int(seed%60))))
			}
			d.paste(paste.String()).write("|")
			want += edit.Clean(paste.String()) + "|"
		}
		d.wantText(want)
		lines, _ := d.c.View(50, 8)
		tuitest.CheckWidth(t, lines, 50)
		if all := strings.Join(lines, ""); strings.ContainsAny(all, "\x00\x07") || strings.Contains(all, "\x1b]") || strings.Contains(all, "\x1b[31m") {
			t.Errorf("seed %d: a control character reaches the screen: %q", seed, all)
		}
		d.press("enter")
		d.wantActions(Submit{Text: want, Mode: p.Steer})
		if got := d.history.entries[0]; got != want {
			t.Errorf("seed %d: the history holds %q, want %q", seed, got, want)
		}
		d.press("up") // from the history it is folded as before
		d.wantText(want)
		if t.Failed() {
			t.FailNow()
		}
	}
}

func TestFoldsSurviveEditing(t *testing.T) {
	long := strings.Repeat("line\n", 30)
	d := newDesk(t).paste(long).write(" then ").paste(strings.ToUpper(long))
	d.press("ctrl+w", "ctrl+a", "ctrl+y") // the last word is the second paste
	d.wantText(strings.ToUpper(long) + long + " then ")
	lines, _ := d.c.View(80, 8)
	if got := lines[1]; !strings.Contains(got, "[pasted 30 lines #2][pasted 30 lines #1] then") {
		t.Errorf("the row is %q", got)
	}
	d.press("right", "backspace")
	d.wantText(strings.ToUpper(long) + " then ")
	d.press("ctrl+_", "ctrl+_", "ctrl+_")
	d.wantText(long + " then " + strings.ToUpper(long))
}
