package safetext

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"plain ünïcödé 漢字":                     "plain ünïcödé 漢字",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b]0;title\x07after":                "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\a": "link",
		"\x1b]52;c;never ended":                "",
		"\x1bPdcs\x1b\\x\x1b_apc\x1b\\y":       "xy",
		"\x1b(Bx\x1b=y\x1bcz":                  "xyz",
		"\u009b31mx\u009d0;t\u009cy":           "xy",
		"\x9b31m":                              "\ufffd31m",
		"bell\a nul\x00 del\x7f":               "bell nul del",
		"10%\r20%\r100%":                       "100%",
		"abcdef\rxy":                           "xycdef",
		"abcdef\r\x1b[Kxy":                     "xy",
		"abcdef\x1b[2K\rxy":                    "xy",
		"abc\x1b[1Kd":                          "   d",
		"done\r":                               "done",
		"spin|\b/\b-":                          "spin-",
		"\b\bx":                                "x",
		"a\tb\tc":                              "a   b   c",
		"漢\tb":                                 "漢  b",
		"漢字\rx":                                "x 字",
		"x漢\b漢":                                "x 漢",
		"abcd\r漢":                              "漢cd",
		"\u202eevil\u2066\u200b\ufeff":         "evil",
		"a\u2028b\nc":                          "a b c",
		"tag\U000e0041\U000e0042":              "tag",
		"e\u0301\rx":                           "x",
		"👨‍👩‍👧 family":                         "👨‍👩‍👧 family",
		"bad\xffbyte":                          "bad\ufffdbyte",
		"a\x1b":                                "a",
		"a\x1b[":                               "a",
		"a\x1b[12;":                            "a",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestCleanKeepsLines(t *testing.T) {
	if got := Clean("a\r\n\x1b[31mb\nc\x1b]0;x\nd"); got != "a\nb\nc\nd" {
		t.Errorf("got %q", got)
	}
}

// What a person has to judge is not printed over.
func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain 漢字":          "plain 漢字",
		"rm -rf /\rls   \n": "rm -rf /␍ls   \n",
		"\x1b[31mx\x00\x7f": "␛[31mx␀␡",
		"a\tb\r\nc":         "a   b\nc",
		"\u202ex\u009b\xff": "�x��",
	} {
		if got := Show(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in    string
		width int
		want  string
	}{
		{"", 5, ""},
		{"one two", 7, "one two"},
		{"one two", 6, "one|two"},
		{"one  two", 4, "one|two"},
		{"abcdefgh", 3, "abc|def|gh"},
		{"x abcdefgh", 4, "x|abcd|efgh"},
		{"a\n\nb", 4, "a||b"},
		{"  indented text", 9, "  indente|d text"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"ab漢字cd", 4, "ab漢|字cd"},
		{"漢", 1, "漢"},
		{"end   ", 9, "end"},
		{"👨‍👩‍👧👨‍👩‍👧", 12, "👨‍👩‍👧👨‍👩‍👧"},
		{"👨‍👩‍👧👨‍👩‍👧", 6, "👨‍👩‍👧|👨‍👩‍👧"},
		{"👨‍👩‍👧x", 3, "👨‍|👩‍|👧x"},
		{"यह निधि", 5, "यह|निधि"}, // not within a word
		{"aa bb cc dd", 5, "aa bb|cc dd"},
		{"     ab", 3, "ab"},
		{"word longerword x", 6, "word|longer|word x"},
	} {
		if d := cmp.Diff(tt.want, strings.Join(Wrap(tt.in, tt.width), "|")); d != "" {
			t.Errorf("%q at %d (-want +got):\n%s", tt.in, tt.width, d)
		}
	}
}

// What the terminal draws as one is counted as one.
func TestJoined(t *testing.T) {
	const s = "👨‍👩‍👧⚠️नि"
	if n := Width(s); n != 6+1+2 {
		t.Errorf("%d columns apart", n)
	}
	Join(true)
	defer Join(false)
	if n := Width(s); n != 2+2+1 {
		t.Errorf("%d columns joined", n)
	}
	if d := cmp.Diff([]string{"👨‍👩‍👧", "👨‍👩‍👧"}, Wrap("👨‍👩‍👧👨‍👩‍👧", 3)); d != "" {
		t.Errorf("joined (-want +got):\n%s", d)
	}
}

func TestHard(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "abc", "a b cd": "a b| cd", "漢字x": "漢|字x", "abcd": "abc|d"} {
		var got []string
		for _, r := range Hard(in, 3) {
			got = append(got, in[r[0]:r[1]])
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Cut("hello", 5), "hello"},
		{Cut("hello", 4), "hel…"},
		{Cut("漢字漢字", 6), "漢字…"},
		{Cut("hello", 0), ""},
		{Fit("\x1b[1mhello\x1b[22m", 5), "\x1b[1mhello\x1b[22m"},
		{Fit("\x1b[1mhello\x1b[22m", 2), "\x1b[1mhe\x1b[22m"},
		{First("\n \x1b[31m\n  one \x1b[1mtwo\nthree"), "one two"},
		{First(" \n"), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"\x1b[31mx\r\ny\tz", "漢字 words 👨‍👩‍👧", "a\u0301\u202e\x9b", "\x1b]0;t", "x\b\b漢\x1b[K", "🇩🇪🇫", "ก็\u200d"} {
		f.Add(s, uint8(7))
	}
	f.Fuzz(func(t *testing.T, s string, width uint8) { check(t, s, int(width)) })
}

// check holds for any text: it becomes harmless, and no line is too wide.
func check(t *testing.T, s string, width int) {
	t.Helper()
	for _, joined := range []bool{true, false} {
		Join(joined)
		checkOne(t, s, width)
	}
}

var spaces = strings.NewReplacer(" ", "", "\n", "")

func checkOne(t *testing.T, s string, width int) {
	t.Helper()
	c, w := Clean(s), max(2, width)
	if again := Clean(c); !isClean(c) || again != c {
		t.Errorf("%q becomes %q, then %q", s, c, again)
	}
	for _, line := range Wrap(c, w) {
		if Width(line) > w {
			t.Errorf("%q: %q is %d wide, want %d", s, line, Width(line), w)
		}
	}
	if got := spaces.Replace(strings.Join(Wrap(c, w), "\n")); got != spaces.Replace(c) {
		t.Errorf("wrapping %q lost text: %q", c, got)
	}
	if shown := Show(s); !isClean(shown) || strings.Count(shown, "\n") != strings.Count(s, "\n") {
		t.Errorf("%q is shown as %q", s, shown)
	}
	line, joined := Line(s), ""
	for _, r := range Hard(line, w) {
		piece := line[r[0]:r[1]]
		if joined += piece; Width(piece) > w {
			t.Errorf("%q: %q is too wide", s, piece)
		}
	}
	if joined != line {
		t.Errorf("breaking %q gave %q", line, joined)
	}
	if Width(Cut(line, w)) > w || Width(Fit(line, w)) > w {
		t.Errorf("%q: cut %q, fit %q", s, Cut(line, w), Fit(line, w))
	}
}

func BenchmarkLine(b *testing.B) {
	for name, s := range map[string]string{
		"clean": strings.Repeat("plain words 漢字 ", 10), "coloured": strings.Repeat("\x1b[32mok\x1b[0m word ", 10),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Line(s)
			}
		})
	}
}
