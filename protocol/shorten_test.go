package protocol

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// numbered returns lines "1\n2\n…n\n".
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

func omitted(n, of int) string { return fmt.Sprintf("\n[... omitted %d of %d lines ...]\n\n", n, of) }

func TestShorten(t *testing.T) {
	const kib10, half = 10 << 10, 5 << 10
	x := func(n int) string { return strings.Repeat("x", n) }
	y := func(n int) string { return strings.Repeat("y", n) }
	long := omitted(0, 1)
	two := omitted(0, 2)
	room := kib10 - half - len(long)

	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"one line", "a\n", "a\n"},
		{"as many bytes as are shown", x(kib10), x(kib10)},
		{"one byte more", x(kib10 + 1), x(half) + long + x(room)},
		{"as many lines as are shown", numbered(1, 256), numbered(1, 256)},
		{"and a last one without line feed", numbered(1, 255) + "end", numbered(1, 255) + "end"},
		{"as many empty lines", strings.Repeat("\n", 256), strings.Repeat("\n", 256)},
		{"one line more", numbered(1, 257), numbered(1, 128) + omitted(1, 257) + numbered(130, 257)},
		{"one unfinished line more", numbered(1, 256) + "end", numbered(1, 128) + omitted(1, 257) + numbered(130, 256) + "end"},
		{"many lines", numbered(1, 1000), numbered(1, 128) + omitted(744, 1000) + numbered(873, 1000)},
		{
			"few and very long lines", x(9000) + "\n" + y(9000),
			x(half) + two + y(kib10-half-len(two)),
		},
		{
			"a short head leaves its room to the tail", numbered(1, 128) + y(20000),
			numbered(1, 128) + omitted(0, 129) + y(kib10-len(numbered(1, 128))-len(omitted(0, 129))),
		},
		{
			"a long head does not take the room of the tail", x(20000) + strings.Repeat("\n", 128) + "end",
			x(half) + omitted(0, 129) + "end",
		},
		{
			"head cut before a rune that does not fit", x(half-1) + "é" + x(kib10),
			x(half-1) + long + x(room+1),
		},
		{
			"head ends with a rune that just fits", x(half-2) + "é" + x(kib10),
			x(half-2) + "é" + long + x(room),
		},
		{
			"tail cut after a rune that does not fit", x(kib10) + "世" + y(room-2),
			x(half) + long + y(room-2),
		},
		{
			"tail begins with a rune that just fits", x(kib10) + "世" + y(room-3),
			x(half) + long + "世" + y(room-3),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Shorten(tt.in)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", brief(got), brief(tt.want))
			}
			checkShortened(t, tt.in, got)
		})
	}
}

// brief shows a long text by its ends.
func brief(s string) string {
	if len(s) < 200 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%d bytes %q … %q", len(s), s[:80], s[len(s)-80:])
}

// checkShortened checks what must hold for every text.
func checkShortened(t *testing.T, in, got string) {
	t.Helper()
	lines := strings.Count(in, "\n")
	if in != "" && !strings.HasSuffix(in, "\n") {
		lines++
	}
	switch {
	case len(in) <= 10<<10 && lines <= 256:
		if got != in {
			t.Errorf("a short text was changed: %s became %s", brief(in), brief(got))
		}
		return
	case len(got) > 10<<10:
		t.Errorf("%d bytes are left", len(got))
	case utf8.ValidString(in) && !utf8.ValidString(got):
		t.Errorf("cut within a rune: %s", brief(got))
	}
	// The text itself may hold such a mark: ours parts it into its two ends.
	mark := omitted(max(0, lines-256), lines)
	for at := range got {
		if !strings.HasPrefix(got[at:], mark) || !endsOf(in, got[:at], got[at+len(mark):]) {
			continue
		}
		if utf8.ValidString(in) && (at == 0 || at+len(mark) == len(got)) {
			t.Errorf("an end is missing: %s", brief(got))
		}
		return
	}
	t.Errorf("%s was shortened to %s", brief(in), brief(got))
}

// endsOf reports whether head and tail are what may be left of in.
func endsOf(in, head, tail string) bool {
	return strings.HasPrefix(in, head) && strings.HasSuffix(in, tail) && len(head)+len(tail) <= len(in) &&
		len(head) <= 5<<10 && strings.Count(head, "\n") <= 128 && strings.Count(strings.TrimSuffix(tail, "\n"), "\n") <= 127
}

func TestShortenAnyText(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	runes := []rune("ab é世🙂")
	for range 150 {
		var b strings.Builder
		perLine := 1 + r.IntN(1<<r.IntN(14))
		for n := r.IntN(30000); b.Len() < n; {
			b.WriteRune(runes[r.IntN(len(runes))])
			if r.IntN(perLine) == 0 {
				b.WriteByte('\n')
			}
		}
		checkShortened(t, b.String(), Shorten(b.String()))
		if t.Failed() {
			return
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("line\n", 300)
	f.Add("世界🙂", 4000)
	f.Add("\xff\x80\x80", 5000)
	f.Add(omitted(1, 2), 600)
	f.Fuzz(func(t *testing.T, s string, times int) {
		if len(s) == 0 || len(s) > 4<<10 {
			return
		}
		in := strings.Repeat(s, min(max(times, 0), 64<<10/len(s)))
		checkShortened(t, in, Shorten(in))
	})
}
