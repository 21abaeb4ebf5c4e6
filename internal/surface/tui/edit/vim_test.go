package edit

import (
	"math/rand/v2"
	"testing"
)

// vimmed presses keys in normal mode. After a command that inserts, the text up to the next < is typed.
func vimmed(b *Buffer, v *Vim, keys string) {
	for _, r := range keys {
		switch {
		case r == '<':
			v.Escape(b)
		case v.Normal:
			v.Key(b, string(r))
		default:
			b.Type(string(r))
		}
	}
}

func TestVim(t *testing.T) {
	for _, tt := range []struct{ keys, before, after string }{
		{"h", "ab|c", "a|bc"},
		{"h", "a\n|b", "a\n|b"},
		{"l", "a|bc", "ab|c"},
		{"l", "ab|c", "ab|c"},
		{"j", "a|b\ncd", "ab\nc|d"},
		{"k", "ab\nc|d", "a|b\ncd"},
		{"w", "|one, two", "one|, two"},
		{"ww", "|one, two", "one, |two"},
		{"w", "on|e\n  two", "one\n  |two"},
		{"b", "one t|wo", "one |two"},
		{"bb", "one t|wo", "|one two"},
		{"b", "|one", "|one"},
		{"e", "|one two", "on|e two"},
		{"ee", "|one two", "one tw|o"},
		{"0", "one t|wo", "|one two"},
		{"$", "|one two", "one tw|o"},
		{"gg", "a\nb|", "|a\nb"},
		{"G", "|a\nb", "a\n|b"},
		{"x", "a|bc", "a|c"},
		{"xx", "ab|c", "|a"},
		{"x", "|", "|"},
		{"dd", "a\n|b\nc", "a\n|c"},
		{"dd", "a\n|b", "|a"},
		{"dd", "|a", "|"},
		{"dw", "|one two", "|two"},
		{"dw", "one |two\nx", "one| \nx"},
		{"de", "|one two", "| two"},
		{"db", "one tw|o", "one |o"},
		{"d$", "one |two", "one| "},
		{"D", "one |two", "one| "},
		{"d0", "one |two", "|two"},
		{"cwten<", "|one two", "te|n two"},
		{"ccten<", "on|e\ntwo", "te|n\ntwo"},
		{"ix<", "a|b", "a|xb"},
		{"ax<", "|ab", "a|xb"},
		{"Ix<", "  a|b", "  |xab"},
		{"Ax<", "|ab", "ab|x"},
		{"ox<", "|a\nb", "a\n|x\nb"},
		{"Ox<", "a\n|b", "a\n|x\nb"},
		{"xu", "a|bc", "a|bc"},
		{"yyp", "|a\nb", "a\n|a\nb"},
		{"yyP", "a\n|b", "a\n|b\nb"},
		{"ddp", "|a\nb", "b\n|a"},
		{"xp", "|abc", "b|ac"},
		{"ywP", "|one two", "one| one two"},
		{"dgz", "|a", "|a"},
		{"d<x", "|ab", "|b"},
	} {
		b, v := with(tt.before), &Vim{Normal: true}
		vimmed(b, v, tt.keys)
		if got := barred(b); got != tt.after {
			t.Errorf("%q in %q: %q, want %q", tt.keys, tt.before, got, tt.after)
		}
	}
}

// Whatever is pressed, the cursor stays within the text.
func TestVimAtRandom(t *testing.T) {
	for range 2000 {
		b, v := with("one, two\n\n  thrée 👨‍👩‍👧|\nx"), &Vim{Normal: true}
		keys := ""
		for range rand.IntN(30) {
			keys += string("hjklwbe0$^gGxdcyiaIAoOupPDC<<<éz"[rand.IntN(31)])
			vimmed(b, v, keys[len(keys)-1:])
			if at := b.Cursor(); at != b.clamp(at) {
				t.Fatalf("after %q the cursor is at %v in %q", keys, at, b.Text())
			}
		}
	}
}
