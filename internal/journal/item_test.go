package journal

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestItemBlocksAreLimited(t *testing.T) {
	it := &Item{}
	for i := range 150 {
		it.add("t", strings.Repeat("–", 100*i))
		size := 0
		for _, b := range it.blocks {
			size += len(b.buf)
			if !utf8.Valid(b.buf) {
				t.Fatal("a block is cut within a rune")
			}
		}
		if size > headBytes+tailBytes || it.end > 3<<20 && size < headBytes+tailBytes-3*blockBytes {
			t.Fatalf("%d of %d bytes are kept", size, it.end)
		}
	}
	ps := it.pieces(0, it.end)
	if ps[0].Offset != 0 || ps[len(ps)-1].Offset+int64(len(ps[len(ps)-1].Text)) != it.end {
		t.Error("head or tail is missing")
	}
}

// What pieces returned does not change when more is written.
func TestPiecesDoNotChange(t *testing.T) {
	it := &Item{}
	var got [][]Piece
	var wanted []string
	for i := range 3000 {
		text := fmt.Sprint(i, " ")
		from := it.end
		it.add("t", text)
		got = append(got, it.pieces(from, it.end))
		wanted = append(wanted, text)
	}
	for i, ps := range got {
		if c := join("i", ps); len(c) != 1 || c[0].Text != wanted[i] {
			t.Fatalf("piece %d is %v, want %q", i, c, wanted[i])
		}
	}
}

func TestCloses(t *testing.T) {
	for _, test := range []struct {
		pattern, item string
		want          bool
	}{
		{"3.1.0", "3.1.0", true},
		{"3.1.0", "3.1.00", false},
		{"3.1.", "3.1.0", true},
		{"3.", "3.1.0", true},
		{"3.", "33.1.0", false},
		{"3", "3.1.0", false},
		{"", "", false},
		{"", "3", false},
	} {
		if got := Closes(test.pattern, test.item); got != test.want {
			t.Errorf("closes(%q, %q) = %v", test.pattern, test.item, got)
		}
	}
}

// A scope remembers what was closed without growing with the conversation.
func TestScopeRemembersLittle(t *testing.T) {
	s := &scope{}
	for turn := range 100 {
		for i := range 50 {
			s.remember(fmt.Sprintf("%d.1.%d", turn, i))
		}
		s.remember(fmt.Sprintf("%d.", turn))
		s.remember(fmt.Sprintf("%d.7.7", turn))
	}
	if len(s.closed) != 100 {
		t.Errorf("%d names", len(s.closed))
	}
}
