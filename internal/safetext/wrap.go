package safetext

import "unicode/utf8"

// Wrap breaks a clean text into lines of at most width columns: at newlines,
// between words, between characters that are two columns wide, and within a word
// only if it does not fit by itself.
func Wrap(s string, width int) []string {
	ranges := Ranges(s, width)
	lines := make([]string, len(ranges))
	for i, r := range ranges {
		lines[i] = s[r[0]:r[1]]
	}
	return lines
}

// Ranges is [Wrap] by offsets: where in s each line begins and ends. Spaces at
// which a line was broken are in none.
func Ranges(s string, width int) [][2]int {
	b := breaker{s: s, width: max(1, width)}
	for i := 0; i < len(s); {
		i += b.take(i)
	}
	b.end(len(s))
	return b.lines
}

// Hard breaks a clean line at the width, wherever that is, as a terminal does.
func Hard(s string, width int) [][2]int {
	width = max(1, width)
	if n, ok := asciiWidth(s); ok && n <= width {
		return [][2]int{{0, len(s)}}
	}
	var lines [][2]int
	start, col := 0, 0
	for i := 0; i < len(s); {
		n, w := next(s[i:], width)
		if col+w > width && col > 0 {
			lines = append(lines, [2]int{start, i})
			start, col = i, 0
		}
		col += w
		i += n
	}
	return append(lines, [2]int{start, len(s)})
}

// A breaker holds the line that is being filled.
type breaker struct {
	s     string
	width int
	lines [][2]int

	start int // of the line
	col   int // its width so far, spaces included
	// The last place where the line may be broken: it ends at stop, the next
	// begins at resume.
	may          bool
	stop, resume int
	resumeCol    int // the width up to resume
	spaces       bool
}

// next returns the length and the width of what s begins with and is not broken: what
// belongs together, or one character if that is wider than a line may be.
func next(s string, most int) (n, width int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	g, w := Cluster(s)
	if w <= max(2, most) {
		return len(g), w
	}
	_, n = utf8.DecodeRuneInString(s)
	return n, Width(s[:n])
}

// isWide reports whether s begins with a character of two columns. One of two parts, each
// a column wide, is not meant: those are in the middle of words.
func isWide(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	return Width(s[:n]) == 2
}

// take adds the character at i and returns its length.
func (b *breaker) take(i int) int {
	if b.s[i] == '\n' {
		b.end(i)
		b.begin(i+1, 0)
		return 1
	}
	n, w := next(b.s[i:], b.width)
	if b.s[i] == ' ' && n == 1 { // and no mark stands on it
		if !b.spaces && i > b.start {
			b.stop = i
			b.may = true
		}
		b.spaces = true
		b.col++
		b.resume, b.resumeCol = i+1, b.col
		return n
	}
	wide := w >= 2 && isWide(b.s[i:])
	if wide && i > b.start && !b.spaces {
		b.may, b.stop, b.resume, b.resumeCol = true, i, i, b.col
	}
	b.spaces = false
	if b.col+w > b.width && b.col > 0 {
		b.cut(i)
	}
	b.col += w
	if wide {
		b.may, b.stop, b.resume, b.resumeCol = true, i+n, i+n, b.col
	}
	return n
}

// cut ends the line before the character at i, at the last good place.
func (b *breaker) cut(i int) {
	if b.may && b.stop > b.start {
		b.lines = append(b.lines, [2]int{b.start, b.stop})
		b.begin(b.resume, b.col-b.resumeCol)
		if b.col > 0 && b.col >= b.width {
			b.cut(i)
		}
		return
	}
	if stop := b.trim(i); stop > b.start { // not mere indentation
		b.lines = append(b.lines, [2]int{b.start, stop})
	}
	b.begin(i, 0)
}

func (b *breaker) begin(start, col int) {
	b.start, b.col, b.may, b.spaces = start, col, false, false
}

// end ends the last line of a paragraph.
func (b *breaker) end(i int) {
	b.lines = append(b.lines, [2]int{b.start, b.trim(i)})
}

// trim takes off the spaces before i.
func (b *breaker) trim(i int) int {
	for i > b.start && b.s[i-1] == ' ' {
		i--
	}
	return i
}
