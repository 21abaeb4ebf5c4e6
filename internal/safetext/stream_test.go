package safetext

import (
	"strings"
	"testing"
)

func TestStrip(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n漢字 é":              "plain\ttext\n漢字 é",
		"a\x1b]0;title\x07b":             "a]0;titleb",
		"a\x1b[2K\rb\bc":                 "a[2Kbc",
		"c1 \u009b2J csi":                "c1 2J csi",
		"\x9b2J a byte that is no rune":  "\uFFFD2J a byte that is no rune",
		"reversed \u202edcba\u2066 text": "reversed \uFFFDdcba\uFFFD text",
		"tag \U000e0041":                 "tag \uFFFD",
		"family 👨‍👩‍👧":                   "family 👨‍👩‍👧",
	} {
		if got := Strip(in); got != want {
			t.Errorf("Strip(%q) = %q, want %q", in, got, want)
		}
	}
}

// However the bytes are split, a writer gives what Strip gives for the whole.
func TestWriterOfSplitCharacters(t *testing.T) {
	const text = "é\u009b2J 漢\x1b[31m字 👩 end\n"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if want := Strip(text); out.String() != want {
			t.Errorf("by %d bytes: %q, want %q", size, out.String(), want)
		}
	}
}
