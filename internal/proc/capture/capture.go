package capture

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	defaultHead = 1 << 20
	defaultTail = 1 << 20
)

// Capture records output in bounded memory: the first bytes and the last ones,
// both streams together in the order of arrival. The zero value is ready and
// keeps 1 MiB at either end. It may be read while output still arrives.
type Capture struct {
	// Head and Tail are how many bytes to keep of the beginning and of the end;
	// 0 means 1 MiB, negative means none. Set them before the first Write.
	Head, Tail int

	mu   sync.Mutex
	head record
	tail record
	left [2]int64 // bytes left out, by stream
}

// Range is a part of the output: bytes Start to End, counted from the beginning
// of all output, End not included.
type Range struct{ Start, End int64 }

// record is a piece of output with the streams its bytes came from.
type record struct {
	bytes []byte
	runs  []run // their lengths add up to len(bytes)
}

// run is a number of bytes of the same stream.
type run struct {
	stream Stream
	n      int
}

// append adds b.
func (r *record) append(s Stream, b []byte) {
	if len(b) == 0 {
		return
	}
	r.bytes = append(r.bytes, b...)
	if n := len(r.runs); n > 0 && r.runs[n-1].stream == s {
		r.runs[n-1].n += len(b)
		return
	}
	r.runs = append(r.runs, run{s, len(b)})
}

// drop takes the first n bytes away and counts them by stream.
func (r *record) drop(n int) (dropped [2]int64) {
	r.bytes = slices.Delete(r.bytes, 0, n)
	gone := 0
	for ; n > 0; gone++ {
		first := &r.runs[gone]
		take := min(n, first.n)
		dropped[first.stream] += int64(take)
		first.n -= take
		n -= take
		if first.n > 0 {
			break
		}
	}
	r.runs = slices.Delete(r.runs, 0, gone)
	return dropped
}

// sizes returns the limits.
func (c *Capture) sizes() (head, tail int) {
	limit := func(n, def int) int {
		if n == 0 {
			return def
		}
		return max(n, 0)
	}
	return limit(c.Head, defaultHead), limit(c.Tail, defaultTail)
}

// Write records b. It is a Sink.
func (c *Capture) Write(s Stream, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail := c.sizes()
	n := min(head-len(c.head.bytes), len(b))
	c.head.append(s, b[:n])
	b = b[n:]
	if skip := len(b) - tail; skip > 0 {
		c.leaveOut(c.tail.drop(len(c.tail.bytes)))
		c.left[s] += int64(skip)
		b = b[skip:]
	}
	c.tail.append(s, b)

	// The tail may grow to twice its size before it is cut, so that a byte is
	// moved once on average and not with every write.
	if len(c.tail.bytes) > 2*tail {
		c.trim(tail)
	}
}

// trim cuts the tail to size.
func (c *Capture) trim(tail int) {
	if over := len(c.tail.bytes) - tail; over > 0 {
		c.leaveOut(c.tail.drop(over))
	}
}

func (c *Capture) leaveOut(n [2]int64) {
	c.left[Stdout] += n[Stdout]
	c.left[Stderr] += n[Stderr]
}

// Total returns how many bytes were written in all.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.head.bytes)+len(c.tail.bytes)) + c.left[Stdout] + c.left[Stderr]
}

// Omitted returns how many bytes between head and tail were left out.
func (c *Capture) Omitted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, tail := c.sizes()
	c.trim(tail)
	return c.left[Stdout] + c.left[Stderr]
}

// StderrRanges returns which of the kept bytes came from standard error, in
// order; neighbours are joined.
func (c *Capture) StderrRanges() []Range {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, tail := c.sizes()
	c.trim(tail)
	var ranges []Range
	at := int64(0)
	add := func(runs []run) {
		for _, r := range runs {
			end := at + int64(r.n)
			if r.stream == Stderr {
				ranges = joinRange(ranges, Range{at, end})
			}
			at = end
		}
	}
	add(c.head.runs)
	at += c.left[Stdout] + c.left[Stderr]
	add(c.tail.runs)
	return ranges
}

// joinRange appends r, as part of the last range if they touch.
func joinRange(ranges []Range, r Range) []Range {
	if n := len(ranges); n > 0 && ranges[n-1].End == r.Start {
		ranges[n-1].End = r.End
		return ranges
	}
	return append(ranges, r)
}

// Text returns all that was kept, in order. Where bytes were left out a line
// says how many.
func (c *Capture) Text() string { return c.text(Stdout, Stderr) }

// Stdout is Text of standard output alone.
func (c *Capture) Stdout() string { return c.text(Stdout) }

// Stderr is Text of standard error alone.
func (c *Capture) Stderr() string { return c.text(Stderr) }

func (c *Capture) text(streams ...Stream) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, tail := c.sizes()
	c.trim(tail)
	head, end := c.head.only(streams), c.tail.only(streams)
	omitted := int64(0)
	for _, s := range streams {
		omitted += c.left[s]
	}
	if omitted == 0 {
		return head + end
	}

	// A character cut in two at the gap is left out whole.
	whole := trimEnd(head)
	rest := trimStart(end)
	omitted += int64(len(head) - len(whole) + len(end) - len(rest))
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", whole, omitted, rest)
}

// only returns the bytes of some streams.
func (r *record) only(streams []Stream) string {
	var b strings.Builder
	at := 0
	for _, run := range r.runs {
		if slices.Contains(streams, run.stream) {
			b.Write(r.bytes[at : at+run.n])
		}
		at += run.n
	}
	return b.String()
}

// trimEnd takes away the beginning of a character that ends s.
func trimEnd(s string) string {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		last := s[len(s)-n:]
		if !utf8.RuneStart(last[0]) {
			continue
		}
		if !utf8.FullRuneInString(last) {
			return s[:len(s)-n]
		}
		break
	}
	return s
}

// trimStart takes away the end of a character that begins s.
func trimStart(s string) string {
	for n := 0; n < utf8.UTFMax && n < len(s); n++ {
		if utf8.RuneStart(s[n]) {
			return s[n:]
		}
	}
	return s
}
