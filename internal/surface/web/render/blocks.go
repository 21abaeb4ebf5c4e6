package render

import "strings"

// Blocks cuts a text that grows into blocks that can be drawn by themselves. All but the last stay as they
// are when the text grows: a reader who has n blocks of it needs those from n-1 on. The rule never looks ahead.
type Blocks struct {
	done  []string // the HTML of blocks that have ended
	text  strings.Builder
	from  int    // where the last block begins
	line  int    // where the last line begins
	fence string // what opened the code that the last line is in
	blank bool   // the line before is empty
}

// Write adds text.
func (b *Blocks) Write(s string) {
	b.text.WriteString(s)
	all := b.text.String()
	for {
		i := strings.IndexByte(all[b.line:], '\n')
		if i < 0 {
			return
		}
		b.take(all, all[b.line:b.line+i])
		b.line += i + 1
	}
}

// Len is the number of bytes written.
func (b *Blocks) Len() int { return b.text.Len() }

// take looks at a line that has ended.
func (b *Blocks) take(all, line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case b.fence != "":
		if strings.HasPrefix(trimmed, b.fence) && strings.Trim(trimmed, b.fence[:1]) == "" {
			b.fence = ""
		}
	case trimmed == "":
	case b.blank && alone(line):
		b.done = append(b.done, Markdown(all[b.from:b.line]))
		b.from = b.line
		fallthrough
	default:
		b.fence = fenceOf(trimmed)
	}
	b.blank = trimmed == "" && b.fence == ""
}

// alone reports whether a line after an empty one begins something new: it is not indented and no item
// of a list that may go on.
func alone(line string) bool {
	switch c := line[0]; {
	case c == ' ' || c == '\t', c == '-' || c == '*' || c == '+', c >= '0' && c <= '9', c == '>', c == '|':
		return false
	}
	return true
}

// fenceOf returns the mark that opens fenced code, if the line does.
func fenceOf(line string) string {
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return ""
	}
	rest := strings.TrimLeft(line, line[:1])
	if line[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return line[:len(line)-len(rest)]
}

// Stable is how many blocks have ended.
func (b *Blocks) Stable() int { return len(b.done) }

// From returns the HTML of the blocks from the nth on, the open one last.
func (b *Blocks) From(n int) []string {
	list := append([]string{}, b.done[min(max(n, 0), len(b.done)):]...)
	return append(list, Markdown(b.text.String()[b.from:]))
}
