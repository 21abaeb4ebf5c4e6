package edit

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

func same(s string) string { return s }

func TestWrapping(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		width      int
		want       []string
	}{
		{"empty", "", 10, []string{""}},
		{"short", "one two", 10, []string{"one two"}},
		{"at a space", "one two three", 10, []string{"one two ", "three"}},
		{"full row and a space", "123456789 x", 10, []string{"123456789 ", "x"}},
		{"space in the last column", "123456789 ", 10, []string{"123456789 ", ""}},
		{"long word", "abcdefghijklmnop", 10, []string{"abcdefghi", "jklmnop"}},
		{"long word after a short one", "a bcdefghijklmnopqrstu", 10, []string{"a ", "bcdefghij", "klmnopqrs", "tu"}},
		{"many spaces", "a" + strings.Repeat(" ", 20), 10, []string{"a         ", "          ", " "}},
		{"wide", "漢字漢字漢字", 10, []string{"漢字漢字", "漢字"}},
		{"wide in a narrow place", "漢字", 0, []string{"漢", "字"}},
		{"tab", "a\tb", 10, []string{"a    b"}},
		{"lines", "a\n\nb", 10, []string{"a", "", "b"}},
	} {
		b := &Buffer{}
		b.SetText(tc.text)
		b.SetWidth(tc.width)
		if diff := cmp.Diff(tc.want, b.View(100, same).Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if n := b.Height(100); n != len(tc.want) {
			t.Errorf("%s: height %d, want %d", tc.name, n, len(tc.want))
		}
	}
}

func TestVerticalMotionKeepsItsColumn(t *testing.T) {
	b := &Buffer{}
	b.SetText("0123456\n漢字漢字\nab\n0123456")
	b.SetWidth(40)
	b.SetCursor(Pos{0, 5})
	var columns []int
	for b.Down() {
		columns = append(columns, b.View(10, same).X)
	}
	for b.Up() {
		columns = append(columns, b.View(10, same).X)
	}
	// The fifth column is inside a wide character, and beyond the end of "ab".
	if diff := cmp.Diff([]int{4, 2, 5, 2, 4, 5}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	b.SetText("abcdefg\naa bb cc dd ee")
	b.SetWidth(8)
	b.SetCursor(Pos{0, 7})
	b.Down() // to the end of a row that is drawn as the beginning of the next
	if f := b.View(10, same); f.Y != 1 {
		t.Errorf("one row down the cursor is in row %d", f.Y)
	}
	b.SetText("one two three four")
	b.SetCursor(Pos{0, 2})
	b.Down()
	if got := b.Cursor(); got != (Pos{0, 10}) {
		t.Errorf("a row further down the cursor is at %v", got)
	}
}

func TestWindowFollowsTheCursor(t *testing.T) {
	b := &Buffer{}
	b.SetWidth(20)
	b.SetText("0\n1\n2\n3\n4\n5\n6\n7\n8\n9")
	see := func() string {
		f := b.View(4, same)
		s := strings.Join(f.Rows, "")
		if f.Above {
			s = "<" + s
		}
		if f.Below {
			s += ">"
		}
		return fmt.Sprintf("%s@%d", s, f.Y)
	}
	got := []string{see()}
	for _, key := range []string{"up", "up", "up", "up", "ctrl+home", "down", "ctrl+end", "backspace", "backspace"} {
		switch key {
		case "up":
			b.Up()
		case "down":
			b.Down()
		default:
			b.Key(tuitest.Press(key))
		}
		got = append(got, see())
	}
	want := []string{"<6789@3", "<6789@2", "<6789@1", "<6789@0", "<5678>@0", "0123>@0", "0123>@1", "<6789@3", "<678@3", "<5678@3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndoSteps(t *testing.T) {
	b := &Buffer{}
	for _, r := range "one two" {
		b.Type(string(r))
	}
	b.Key(tuitest.Press("backspace"))
	b.Key(tuitest.Press("backspace"))
	b.Key(tuitest.Press("left"))
	b.Type("x")
	b.Key(tuitest.Press("left"))
	b.Key(tuitest.Press("right"))
	b.Type("y")
	var got []string
	for b.Undo() {
		got = append(got, b.Text())
	}
	// Erasing is one step, each word is one, and a motion begins a new one.
	if diff := cmp.Diff([]string{"one xt", "one t", "one two", "one ", ""}, got); diff != "" {
		t.Errorf("undo (-want +got):\n%s", diff)
	}
	b.Redo()
	b.Redo()
	b.Type("!")
	if b.Redo() || b.Text() != "one two!" {
		t.Errorf("after a new change redo gave %q", b.Text())
	}
}

// A flag comes about when what is between its halves is erased; the next
// Backspace takes all of it.
func TestUndoOfJoinedClusters(t *testing.T) {
	b := &Buffer{}
	b.SetText("🇩x🇪")
	b.SetCursor(Pos{0, 5})
	b.Key(tuitest.Press("backspace"))
	b.Key(tuitest.Press("backspace"))
	var got []string
	for range 2 {
		got = append(got, b.Text())
		b.Undo()
	}
	if diff := cmp.Diff([]string{"", "🇩🇪", "🇩x🇪"}, append(got, b.Text())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetTextCleans(t *testing.T) {
	b := &Buffer{}
	b.SetText("a\x1b[1mb\r\nc\U00108000")
	if got := b.Text(); got != "ab\nc\uFFFD" {
		t.Errorf("text is %q", got)
	}
}

func TestUndoIsBounded(t *testing.T) {
	b := &Buffer{}
	for range 5 * maxUndo {
		b.Insert("x")
	}
	steps := 0
	for b.Undo() {
		steps++
	}
	if steps < maxUndo || steps > 2*maxUndo {
		t.Errorf("%d steps, want between %d and %d", steps, maxUndo, 2*maxUndo)
	}
}

func TestSingleLine(t *testing.T) {
	b := &Buffer{Single: true}
	b.Insert("one\ntwo\r\nthree")
	if got := b.Text(); got != "one two three" {
		t.Errorf("text is %q", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"a\r\nb\rc":             "a\nb\nc",
		"\x1b[1;31mred\x1b[0m":  "red",
		"\x1b]0;title\x07x":     "x",
		"a\x00\x07\x7fb":        "ab",
		"\xff\xfe":              "\uFFFD",
		"x\u2028y\u0085z":       "x\ny\nz",
		"\U00108000\U0010FFFD":  "\uFFFD\uFFFD",
		"\U000F0001 icon":       "\U000F0001 icon",
		"tab\tand\nline":        "tab\tand\nline",
		"\u200fright to left":   "\u200fright to left",
		"e\u0301 👨‍👩‍👧 \u00a0x": "e\u0301 👨‍👩‍👧 \u00a0x",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestKeysThatAreNotOurs(t *testing.T) {
	b := &Buffer{}
	for _, name := range []string{"enter", "tab", "up", "down", "esc", "pgup", "ctrl+c", "ctrl+x", "alt+q"} {
		if b.Key(tuitest.Press(name)) {
			t.Errorf("%s was used", name)
		}
	}
	if !b.Empty() {
		t.Errorf("text is %q", b.Text())
	}
	// What a key layout makes of AltGr is text.
	if !b.Key(tea.KeyPressMsg{Code: 'q', Mod: tea.ModAlt, Text: "@"}) || b.Text() != "@" {
		t.Errorf("text is %q", b.Text())
	}
}

func TestFoldsAreBounded(t *testing.T) {
	b := &Buffer{folds: make([]Fold, lastFold-firstFold+1)}
	b.InsertFold(Fold{Label: "[label]", Text: "the text itself"})
	if b.Text() != "the text itself" {
		t.Errorf("text is %q", b.Text())
	}
}

func TestRefold(t *testing.T) {
	b := &Buffer{}
	b.InsertFold(Fold{Label: "[1]", Text: "long text"})
	b.InsertFold(Fold{Label: "[2]", Text: "an even long text here"})
	b.InsertFold(Fold{Label: "[image]", Text: "/x.png", Image: true})
	back := b.Refold("a long text, an even long text here, [image] /x.png \U00108001")
	got := b.Expand(back, func(f Fold) string { return "<" + f.Label + ">" })
	if want := "a <[1]>, <[2]>, <[image]> /x.png \uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
