package edit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// What wrapping promises: nothing is lost, nothing is too wide, a word is broken
// only if it does not fit by itself, and no row ends before it has to.
func TestWrapKeepsItsPromises(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 6))
	for range longtest.Default(3000, 1000) {
		var words []string
		for range rnd.IntN(12) {
			words = append(words, strings.Repeat([]string{"a", "漢", "👍🏽", "e\u0301"}[rnd.IntN(4)], rnd.IntN(14)))
		}
		text := strings.Join(words, " ")
		b := &Buffer{}
		b.SetText(text)
		width := 4 + rnd.IntN(20)
		b.SetWidth(width)
		rows := b.layout(0)

		at := 0
		for i, r := range rows {
			if r.start != at || r.end < r.start {
				t.Fatalf("%q in %d: row %d is %v, want it to begin at %d", text, width, i, r, at)
			}
			at = r.end
			part := text[r.start:r.end]
			wide := b.measure(strings.TrimSuffix(part, " "))
			if wide > width-1 {
				t.Fatalf("%q in %d: row %q is %d wide", text, width, part, wide)
			}
			if i+1 < len(rows) {
				checkBreak(t, b, text, r, rows[i+1], width)
			}
		}
		if at != len(text) {
			t.Fatalf("%q in %d: the rows end at %d", text, width, at)
		}
	}
}

// checkBreak checks the place between two rows.
func checkBreak(t *testing.T, b *Buffer, text string, r, next row, width int) {
	t.Helper()
	part, rest := text[r.start:r.end], text[next.start:]
	if rest == "" {
		return // room for the cursor
	}
	first, _, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(rest, " ") {
		first = " "
	}
	cluster, _ := b.cluster(rest)
	if strings.HasSuffix(part, " ") {
		if b.measure(part+first) <= width-1 {
			t.Fatalf("%q in %d: %q would have fitted behind %q", text, width, first, part)
		}
		return
	}
	if b.measure(part+cluster) <= width-1 {
		t.Fatalf("%q in %d: there was room behind %q", text, width, part)
	}
	if i := strings.LastIndex(part, " "); i >= 0 && !strings.HasPrefix(rest, " ") {
		t.Fatalf("%q in %d: the word after %q was broken although a space was there", text, width, part[:i])
	}
}

func TestRowOfEveryPlace(t *testing.T) {
	b := &Buffer{}
	b.SetText(strings.Repeat("some words and 漢字 ", 10))
	b.SetWidth(17)
	rows := b.layout(0)
	want := 0
	for off := range len(b.Line(0)) + 1 {
		for want+1 < len(rows) && rows[want+1].start <= off {
			want++
		}
		if got := rowAt(rows, off); got != want {
			t.Errorf("offset %d is in row %d, want %d", off, got, want)
		}
	}
}
