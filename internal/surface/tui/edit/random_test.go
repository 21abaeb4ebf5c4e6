package edit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

var editKeys = []string{
	"left", "right", "alt+b", "alt+f", "home", "end", "ctrl+home", "ctrl+end", "backspace", "delete",
	"ctrl+w", "alt+backspace", "alt+d", "ctrl+u", "ctrl+k", "ctrl+y", "ctrl+t",
}

// typed holds what joins with its neighbours in every way: combining marks, a
// joiner, flags, Hangul, a prepended mark, wide and narrow characters.
var typed = []string{
	"a", "b", " ", " ", "\n", "\t", "é", "e", "\u0301", "漢", "字", "👍", "🏽", "👨", "\u200d", "👩", "🇩", "🇪", "🇫",
	"ᄒ", "ᅡ", "ᆫ", "\u0600", "_", "-", ".", "한", "️", "❤", "नि", "ก็",
}

func offset(b *Buffer) int {
	n := 0
	for i := range b.Cursor().Line {
		n += len(b.Line(i)) + 1
	}
	return n + b.Cursor().Off
}

func TestEditorEqualsReference(t *testing.T) {
	for seed := range uint64(longtest.Default(60, 25)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b, r := &Buffer{}, &reference{}
		var trail []string
		for range 400 {
			var did string
			switch n := rnd.IntN(100); {
			case n < 50:
				did = typed[rnd.IntN(len(typed))]
				b.Type(did)
				r.replace(r.cur, r.cur, did)
			case n < 53:
				did = "fold"
				b.InsertFold(Fold{Label: "[label]", Text: "text"})
				r.replace(r.cur, r.cur, string(firstFold+rune(b.Folds()-1)))
			default:
				did = editKeys[rnd.IntN(len(editKeys))]
				if !b.Key(tuitest.Press(did)) {
					t.Fatalf("key %s is not used", did)
				}
				r.key(did)
			}
			trail = append(trail, did)
			if b.Text() != r.text || offset(b) != r.cur {
				t.Fatalf("seed %d after %q:\ngot  %q at %d\nwant %q at %d", seed, trail, b.Text(), offset(b), r.text, r.cur)
			}
		}
	}
}

func TestUndoTakesEverythingBack(t *testing.T) {
	for seed := range uint64(longtest.Default(40, 20)) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		b := &Buffer{}
		seen := map[string]bool{"": true}
		for range 300 {
			randomKey(b, rnd)
			seen[b.Text()] = true
		}
		last := b.Text()
		steps := 0
		for b.Undo() {
			steps++
			if !seen[b.Text()] {
				t.Fatalf("seed %d: undo made a text that never was: %q", seed, b.Text())
			}
			checkCursor(t, b)
		}
		if b.Text() != "" {
			t.Fatalf("seed %d: %q is left after all was undone", seed, b.Text())
		}
		for b.Redo() {
			steps--
			checkCursor(t, b)
		}
		if b.Text() != last || steps != 0 {
			t.Fatalf("seed %d: redo gave %q (%d steps off), want %q", seed, b.Text(), steps, last)
		}
	}
}

func randomKey(b *Buffer, rnd *rand.Rand) {
	switch n := rnd.IntN(100); {
	case n < 60:
		b.Type(typed[rnd.IntN(len(typed))])
	case n < 62:
		b.InsertFold(Fold{Label: "[pasted 30 lines]", Text: "text"})
	case n < 66:
		b.Up()
	case n < 70:
		b.Down()
	default:
		b.Key(tuitest.Press(editKeys[rnd.IntN(len(editKeys))]))
	}
}

func checkCursor(t *testing.T, b *Buffer) {
	t.Helper()
	cur := b.Cursor()
	if cur != b.clamp(cur) {
		t.Fatalf("cursor %v is not between two clusters of %q", cur, b.Text())
	}
}

func TestRandomKeysKeepTheFrame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	b := &Buffer{}
	// A mark that joins with what follows it joins with the spaces of a drawn tab,
	// too, and no terminal agrees with another about that.
	joining := slices.Index(typed, "\u0600")
	typed[joining] = "x"
	defer func() { typed[joining] = "\u0600" }()
	defer safetext.Join(false)
	for i := range 10000 {
		if rnd.IntN(50) == 0 {
			b.SetWidth(rnd.IntN(60))
			safetext.Join(rnd.IntN(2) == 0)
		}
		if rnd.IntN(500) == 0 {
			b.SetText(strings.Repeat("long words 漢字 and more\n", rnd.IntN(30)))
		}
		if rnd.IntN(20) == 0 {
			b.Undo()
		}
		randomKey(b, rnd)
		checkCursor(t, b)
		height := rnd.IntN(8)
		checkFrame(t, b, b.View(height, func(s string) string { return s }), height)
		if t.Failed() {
			t.Fatalf("after %d keys", i)
		}
	}
}

func checkFrame(t *testing.T, b *Buffer, f Frame, height int) {
	t.Helper()
	width := max(b.width, minWidth)
	for _, r := range f.Rows {
		if w := safetext.Width(r); w > width {
			t.Errorf("row %q is %d wide, want %d at most", r, w, width)
		}
	}
	if len(f.Rows) == 0 || len(f.Rows) > max(height, 1) || f.Y >= len(f.Rows) || f.X < 0 || f.X >= width {
		t.Errorf("cursor at %d,%d in %d rows of %d columns", f.X, f.Y, len(f.Rows), width)
	}
	if whole := b.Height(1 << 20); len(f.Rows) < min(whole, max(height, 1)) {
		t.Errorf("%d rows shown of %d in a height of %d", len(f.Rows), whole, height)
	}
	col := 0
	for s := f.Rows[f.Y]; s != "" && col < f.X; {
		c, w := safetext.Cluster(s)
		col += w
		s = s[len(c):]
	}
	if col != f.X {
		t.Errorf("the cursor at column %d is inside a character of %q", f.X, f.Rows[f.Y])
	}
}
