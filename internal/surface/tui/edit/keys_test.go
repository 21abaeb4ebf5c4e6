package edit

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

// with returns a buffer whose cursor is where the bar is in text.
func with(text string) *Buffer {
	before, after, _ := strings.Cut(text, "|")
	b := &Buffer{}
	b.SetText(before + after)
	line := strings.Count(before, "\n")
	b.SetCursor(Pos{line, len(before) - strings.LastIndexByte(before, '\n') - 1})
	b.past = nil
	return b
}

// barred returns a buffer's text with a bar where the cursor is.
func barred(b *Buffer) string {
	lines := strings.Split(b.Text(), "\n")
	cur := b.Cursor()
	lines[cur.Line] = lines[cur.Line][:cur.Off] + "|" + lines[cur.Line][cur.Off:]
	return strings.Join(lines, "\n")
}

var keyCases = []struct{ keys, before, after string }{
	{"left ctrl+b", "ab|c", "a|bc"},
	{"left ctrl+b", "a\n|b", "a|\nb"},
	{"left ctrl+b", "|a", "|a"},
	{"left ctrl+b", "a👨‍👩‍👧|", "a|👨‍👩‍👧"},
	{"right ctrl+f", "a|bc", "ab|c"},
	{"right ctrl+f", "a|\nb", "a\n|b"},
	{"right ctrl+f", "a|", "a|"},
	{"right ctrl+f", "|e\u0301x", "e\u0301|x"},

	{"alt+b alt+left ctrl+left", "one two-th|ree", "one two-|three"},
	{"alt+b alt+left ctrl+left", "one  |", "|one  "},
	{"alt+b alt+left ctrl+left", "one\n|two", "|one\ntwo"},
	{"alt+b alt+left ctrl+left", "|", "|"},
	{"alt+f alt+right ctrl+right", "o|ne two", "one| two"},
	{"alt+f alt+right ctrl+right", "one|, two_three.", "one, two_three|."},
	{"alt+f alt+right ctrl+right", "one|\n\ntwo", "one\n\ntwo|"},

	{"home ctrl+a", "a\nbc|d", "a\n|bcd"},
	{"end ctrl+e", "a\nb|cd\ne", "a\nbcd|\ne"},
	{"ctrl+home alt+< alt+shift+,", "a\nb|", "|a\nb"},
	{"ctrl+end alt+> alt+shift+.", "|a\nb", "a\nb|"},

	{"backspace shift+backspace ctrl+h", "ab|c", "a|c"},
	{"backspace shift+backspace ctrl+h", "a\n|b", "a|b"},
	{"backspace shift+backspace ctrl+h", "|a", "|a"},
	{"backspace shift+backspace ctrl+h", "e\u0301|", "|"},
	{"backspace shift+backspace ctrl+h", "x🇩🇪|", "x|"},
	{"delete ctrl+d", "a|bc", "a|c"},
	{"delete ctrl+d", "a|\nb", "a|b"},
	{"delete ctrl+d", "a|", "a|"},
	{"delete ctrl+d", "|👍🏽x", "|x"},

	{"ctrl+w", "one two-three|", "one |"},
	{"ctrl+w", "one two  |x", "one |x"},
	{"ctrl+w", "one\n|", "|"},
	{"alt+backspace ctrl+backspace", "one two-three|", "one two-|"},
	{"alt+d alt+delete ctrl+delete", "|one two", "| two"},
	{"alt+d alt+delete ctrl+delete", "one|, two three", "one| three"},
	{"ctrl+u", "x\nab|c", "x\n|c"},
	{"ctrl+u", "x\n|c", "x\n|c"},
	{"ctrl+k", "a|bc\nd", "a|\nd"},
	{"ctrl+k", "a|\nd", "a|d"},
	{"ctrl+k", "a|", "a|"},
	{"ctrl+t", "ab|c", "acb|"},
	{"ctrl+t", "abc|", "acb|"},
	{"ctrl+t", "|abc", "|abc"},
	{"ctrl+t", "a|", "a|"},
	{"ctrl+t", "x\n|ab", "x\n|ab"},
	{"ctrl+t", "漢字|", "字漢|"},
}

// sequences are keys that mean something only after others.
var sequences = []struct{ keys, before, after string }{
	{"ctrl+w ctrl+y ctrl+y", "one two|", "one twotwo|"},
	{"ctrl+k ctrl+k ctrl+y", "|a\nb", "\n|b"},
	{"ctrl+u ctrl+end ctrl+y", "ab|c", "cab|"},
	{"alt+d left ctrl+y", "a|b", "b|a"},
	{"ctrl+y", "a|", "a|"},
	{"ctrl+w ctrl+_", "one two|", "one two|"},
	{"ctrl+w ctrl+/", "one two|", "one two|"},
	{"ctrl+w ctrl+shift+-", "one two|", "one two|"},
	{"ctrl+w alt+z", "one two|", "one two|"},
	{"ctrl+w ctrl+_ alt+Z", "one two|", "one |"},
	{"ctrl+w ctrl+_ alt+shift+z", "one two|", "one |"},
	{"ctrl+_ alt+Z", "one|", "one|"},
	{"a b ctrl+_", "|", "|"},
	{"a space b ctrl+_", "|", "a |"},
	{"a ctrl+a b ctrl+_ ctrl+_", "|", "|"},
}

func TestEveryKey(t *testing.T) {
	tested := map[string]bool{}
	for _, tc := range keyCases {
		for _, key := range strings.Fields(tc.keys) {
			tested[key] = true
			b := with(tc.before)
			if !b.Key(tuitest.Press(key)) {
				t.Errorf("%s is not used", key)
			}
			if got := barred(b); got != tc.after {
				t.Errorf("%s in %q gives %q, want %q", key, tc.before, got, tc.after)
			}
			b.Undo()
			if got := b.Text(); got != strings.ReplaceAll(tc.before, "|", "") {
				t.Errorf("%s in %q is undone to %q", key, tc.before, got)
			}
		}
	}
	for _, tc := range sequences {
		b := with(tc.before)
		for _, key := range strings.Fields(tc.keys) {
			tested[key] = true
			b.Key(tuitest.Press(key))
		}
		if got := barred(b); got != tc.after {
			t.Errorf("%s in %q gives %q, want %q", tc.keys, tc.before, got, tc.after)
		}
	}
	for key := range keys {
		if !tested[key] {
			t.Errorf("%s is not tested", key)
		}
	}
}

func TestPlacesThatDoNotExist(t *testing.T) {
	b := &Buffer{}
	b.SetCursor(Pos{3, 3})
	if b.Cursor() != (Pos{}) || b.Line(0) != "" || b.Line(-1) != "" || b.Lines() != 1 || b.Undo() || b.Redo() {
		t.Error("an empty buffer has something in it")
	}
	b.SetText("ab\n👍c")
	for at, want := range map[Pos]Pos{
		{-1, 5}: {0, 0},
		{0, -1}: {0, 0},
		{0, 99}: {0, 2},
		{9, 0}:  {1, 5},
		{1, 2}:  {1, 4}, // inside the thumb: behind it
	} {
		if b.SetCursor(at); b.Cursor() != want {
			t.Errorf("%v became %v, want %v", at, b.Cursor(), want)
		}
	}
	b.Replace(Pos{1, 5}, Pos{0, 1}, "X") // the other way round
	if b.Text() != "aX" {
		t.Errorf("text is %q", b.Text())
	}
}
