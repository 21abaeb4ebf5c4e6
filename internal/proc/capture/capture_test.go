package capture

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// piece is one write.
type piece struct {
	stream Stream
	text   string
}

func capture(head, tail int, pieces ...piece) *Capture {
	c := &Capture{Head: head, Tail: tail}
	for _, p := range pieces {
		c.Write(p.stream, []byte(p.text))
	}
	return c
}

func TestCapture(t *testing.T) {
	for _, c := range []struct {
		name                 string
		head, tail           int
		pieces               []piece
		text, stdout, stderr string
		omitted              int64
		ranges               []Range
	}{
		{name: "nothing"},
		{
			name:   "both streams in order",
			pieces: []piece{{Stdout, "a\n"}, {Stderr, "b\n"}, {Stderr, ""}, {Stderr, "c\n"}, {Stdout, "d\n"}},
			text:   "a\nb\nc\nd\n", stdout: "a\nd\n", stderr: "b\nc\n", ranges: []Range{{2, 6}},
		},
		{
			name: "exactly full", head: 3, tail: 2,
			pieces: []piece{{Stdout, "abcde"}}, text: "abcde", stdout: "abcde",
		},
		{
			name: "one too many", head: 3, tail: 2,
			pieces: []piece{{Stdout, "abcdef"}}, omitted: 1,
			text:   "abc\n[... 1 bytes left out ...]\nef",
			stdout: "abc\n[... 1 bytes left out ...]\nef",
		},
		{
			name: "one range across the seam", head: 3, tail: 3,
			pieces: []piece{{Stdout, "a"}, {Stderr, "bcde"}, {Stdout, "f"}},
			text:   "abcdef", stdout: "af", stderr: "bcde", ranges: []Range{{1, 5}},
		},
		{
			name: "ranges count what was left out", head: 2, tail: 2,
			pieces:  []piece{{Stderr, "a"}, {Stdout, "bcd"}, {Stderr, "efg"}, {Stdout, "h"}},
			omitted: 4, ranges: []Range{{0, 1}, {6, 7}},
			text:   "ab\n[... 4 bytes left out ...]\ngh",
			stdout: "b\n[... 2 bytes left out ...]\nh",
			stderr: "a\n[... 2 bytes left out ...]\ng",
		},
		{
			name: "no tail", head: 2, tail: -1,
			pieces: []piece{{Stdout, "ab"}, {Stdout, "cd"}}, omitted: 2,
			text:   "ab\n[... 2 bytes left out ...]\n",
			stdout: "ab\n[... 2 bytes left out ...]\n",
		},
		{
			name: "no head", head: -1, tail: 2,
			pieces: []piece{{Stdout, "ab"}, {Stderr, "cd"}}, omitted: 2, ranges: []Range{{2, 4}},
			text:   "\n[... 2 bytes left out ...]\ncd",
			stdout: "\n[... 2 bytes left out ...]\n", stderr: "cd",
		},
		{
			name: "characters are not cut", head: 5, tail: 4,
			pieces: []piece{{Stdout, "xxéé–yyyy–éx"}}, omitted: 10,
			text:   "xxé\n[... 12 bytes left out ...]\néx",
			stdout: "xxé\n[... 12 bytes left out ...]\néx",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := capture(c.head, c.tail, c.pieces...)
			// In this order: StderrRanges and Omitted must cut to size as well.
			if d := cmp.Diff(c.ranges, got.StderrRanges()); d != "" {
				t.Errorf("ranges of stderr (-want +got):\n%s", d)
			}
			if got.Omitted() != c.omitted {
				t.Errorf("omitted %d, want %d", got.Omitted(), c.omitted)
			}
			have := []string{got.Text(), got.Stdout(), got.Stderr()}
			if d := cmp.Diff([]string{c.text, c.stdout, c.stderr}, have); d != "" {
				t.Errorf("text, stdout, stderr (-want +got):\n%s", d)
			}
		})
	}
}

func TestCaptureDefaults(t *testing.T) {
	var c Capture
	line := bytes.Repeat([]byte("x"), 1000)
	for range 3000 {
		c.Write(Stdout, line)
	}
	if got, want := c.Omitted(), int64(3000*1000-2<<20); got != want {
		t.Errorf("omitted %d, want %d", got, want)
	}
	if got := c.Total(); got != 3000*1000 {
		t.Errorf("total %d, want 3000000", got)
	}
}

// TestCaptureProperties compares random writes with a recorder that keeps all.
func TestCaptureProperties(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := &Capture{Head: 1 + rnd.IntN(40), Tail: 1 + rnd.IntN(40)}
		var all []byte
		var from []Stream
		for range rnd.IntN(30) {
			b := make([]byte, rnd.IntN(20))
			for i := range b {
				b[i] = byte('a' + rnd.IntN(26))
			}
			s := Stream(rnd.IntN(2))
			c.Write(s, b)
			all = append(all, b...)
			for range b {
				from = append(from, s)
			}
			if rnd.IntN(4) == 0 {
				compareCapture(t, seed, c, all, from) // reading must not disturb
			}
		}
		compareCapture(t, seed, c, all, from)
		if t.Failed() {
			return
		}
	}
}

func compareCapture(t *testing.T, seed uint64, c *Capture, all []byte, from []Stream) {
	t.Helper()
	lost := max(len(all)-c.Head-c.Tail, 0)
	if c.Total() != int64(len(all)) || c.Omitted() != int64(lost) {
		t.Errorf("seed %d: total %d, omitted %d, want %d and %d", seed, c.Total(), c.Omitted(), len(all), lost)
	}
	kept := func(i int) bool { return i < c.Head || i >= c.Head+lost }
	if lost == 0 && (c.Text() != string(all) || c.Stdout() != pick(all, from, Stdout) || c.Stderr() != pick(all, from, Stderr)) {
		t.Errorf("seed %d: something was lost although all fits", seed)
	}
	inRange := make([]bool, len(all))
	for _, r := range c.StderrRanges() {
		for i := r.Start; i < r.End; i++ {
			inRange[i] = true
		}
	}
	for i := range all {
		if want := kept(i) && from[i] == Stderr; inRange[i] != want {
			t.Errorf("seed %d: byte %d in the ranges of stderr: %v, want %v", seed, i, inRange[i], want)
		}
	}
	if lost > 0 {
		head, tail := string(all[:c.Head]), string(all[c.Head+lost:])
		if text := c.Text(); !strings.HasPrefix(text, head+"\n[") || !strings.HasSuffix(text, "]\n"+tail) {
			t.Errorf("seed %d: text %q, want %q … %q", seed, text, head, tail)
		}
	}
}

func pick(all []byte, from []Stream, s Stream) string {
	var b strings.Builder
	for i, c := range all {
		if from[i] == s {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestCaptureMemory writes much more than is kept in small pieces that change
// the stream each time, the worst case for the record of streams.
func TestCaptureMemory(t *testing.T) {
	c := &Capture{Head: 100, Tail: 100}
	for i := range 100_000 {
		c.Write(Stream(i%2), []byte("xyz"))
	}
	if n := cap(c.tail.bytes) + cap(c.head.bytes) + cap(c.tail.runs) + cap(c.head.runs); n > 2000 {
		t.Errorf("%d bytes and runs are held to keep 200 bytes", n)
	}
}

func FuzzCaptureText(f *testing.F) {
	f.Add("xxéé–yyyy–éx", 4, 4)
	f.Add("\xe2\x80", 1, 1)
	f.Fuzz(func(t *testing.T, s string, head, tail int) {
		if head > 1<<20 || tail > 1<<20 {
			t.Skip()
		}
		c := capture(head, tail, piece{Stdout, s})
		text := c.Text()
		if utf8.ValidString(s) && !utf8.ValidString(text) {
			t.Errorf("valid %q was cut to invalid %q", s, text)
		}
	})
}
