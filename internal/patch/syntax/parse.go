// Package syntax reads the patches that models write, and says what is wrong with one. It knows no files: package patch
// verifies patches against them. The format is described there. Start with [Parse].
package syntax

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Patch is a parsed patch: what it asks for, not yet held against any file.
type Patch struct {
	Sections []Section
}

// Kind says what a section does with its file.
type Kind string

// The kinds of section.
const (
	Add    Kind = "add"
	Update Kind = "update"
	Delete Kind = "delete"
)

// Section is the part of a patch that concerns one file.
type Section struct {
	Kind    Kind
	Path    string  // as written
	MoveTo  string  // Update only: the new path, empty to stay
	Content string  // Add: the whole file; Replace: the new text
	Old     string  // Replace only: the text to replace
	All     bool    // Replace only: every occurrence
	Chunks  []Chunk // Update only, at least one
	Line    int     // of the section's header in the patch
}

// Chunk is one place of an updated file.
type Chunk struct {
	Anchors []Anchor // lines to pass first, outermost first
	Lines   []Line   // at least one
	AtEnd   bool     // "*** End of File": the lines are the file's last ones

	// Set by the diff convention "\ No newline at end of file" after a line of
	// the old side, the new side, or (after a context line) both.
	OldUnterminated, NewUnterminated bool
}

// Anchor is the text of an "@@" line: a line of the file, above the place.
type Anchor struct {
	Text string
	Line int // in the patch
}

// Line is one line of a chunk.
type Line struct {
	Op   byte // ' ' context, '-' removed, '+' added
	Text string
	Line int // in the patch
}

const (
	beginMarker = "*** Begin Patch"
	endMarker   = "*** End Patch"
	addHeader   = "*** Add File: "
	delHeader   = "*** Delete File: "
	updHeader   = "*** Update File: "
	moveHeader  = "*** Move to: "
	eofMarker   = "*** End of File"
)

// diffRange is what follows "@@" in a unified diff. Models write it from habit
// and cannot count, so it stands for a bare "@@".
var diffRange = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@`) })

// Parse reads a patch. The error is always an *Error. A patch without sections
// parses; Verify refuses it.
func Parse(text string) (*Patch, error) {
	lines, err := unwrap(text)
	if err != nil {
		return nil, err
	}

	p := &parser{lines: lines, at: 1}
	patch := &Patch{}
	for {
		p.skipBlank()
		if p.done() {
			return patch, nil
		}
		section, err := p.section(patch.Sections)
		if err != nil {
			return nil, err
		}
		patch.Sections = append(patch.Sections, section)
	}
}

// unwrap returns the lines of the patch from its begin marker to its end
// marker, without what is wrapped around them.
func unwrap(text string) ([]string, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if n := len(lines); n >= 4 && isHeredocStart(lines[0]) && strings.HasSuffix(lines[n-1], "EOF") {
		lines = strings.Split(strings.TrimSpace(strings.Join(lines[1:n-1], "\n")), "\n")
	}
	// A patch sent with CRLF line ends means the lines without the CR; in any
	// other patch a CR belongs to the text.
	if strings.HasSuffix(lines[0], "\r") {
		for i, line := range lines {
			lines[i] = strings.TrimSuffix(line, "\r")
		}
	}

	last := len(lines) - 1
	if lines[0] != beginMarker {
		return nil, &Error{Line: 1, Problem: fmt.Sprintf("the first line must be %q, found %q", beginMarker, Clip(lines[0]))}
	}
	if last == 0 || lines[last] != endMarker {
		return nil, &Error{Line: last + 1, Problem: fmt.Sprintf("the last line must be %q, found %q", endMarker, Clip(lines[last]))}
	}
	return lines, nil
}

func isHeredocStart(line string) bool {
	switch strings.TrimSuffix(line, "\r") {
	case "<<EOF", "<<'EOF'", `<<"EOF"`:
		return true
	}
	return false
}

// Clip shortens a line for a message.
func Clip(line string) string {
	const limit = 120
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:limit], "") + "…"
}

// parser walks over the lines of a patch; the last line is the end marker.
type parser struct {
	lines []string
	at    int // index of the next line
}

func (p *parser) done() bool    { return p.at >= len(p.lines)-1 }
func (p *parser) line() string  { return p.lines[p.at] }
func (p *parser) number() int   { return p.at + 1 }
func (p *parser) next() string  { p.at++; return p.lines[p.at-1] }
func (p *parser) isBlank() bool { return strings.TrimSpace(p.line()) == "" }

func (p *parser) skipBlank() {
	for !p.done() && p.isBlank() {
		p.at++
	}
}

func (p *parser) section(before []Section) (Section, error) {
	s := Section{Line: p.number()}
	// Trimmed on the left only at first, so that a header that lost its path
	// is still known for what it is.
	header := strings.TrimLeft(p.next(), " \t")
	var ok bool
	for _, form := range []struct {
		prefix string
		kind   Kind
	}{{addHeader, Add}, {delHeader, Delete}, {updHeader, Update}} {
		if s.Path, ok = strings.CutPrefix(header+" ", form.prefix); ok {
			s.Kind = form.kind
			break
		}
	}
	if !ok {
		return s, notHeader(s.Line, header, before)
	}

	s.Path = strings.TrimSpace(s.Path)
	if err := checkPath(s.Path); err != "" {
		return s, &Error{Line: s.Line, File: s.Path, Problem: err}
	}
	switch s.Kind {
	case Add:
		p.added(&s)
		return s, nil
	case Update:
		return s, p.update(&s)
	}
	return s, nil
}

const (
	lineHint  = `context lines begin with a space, added ones with "+", removed ones with "-"`
	addedHint = `every line of an added file begins with "+", an empty one is a lone "+"`
)

// notHeader explains a line that is no header, if possible by the section that
// it comes after.
func notHeader(n int, line string, before []Section) *Error {
	e := &Error{Line: n, Problem: fmt.Sprintf("expected a section header, found %q", Clip(strings.TrimSpace(line)))}
	if len(before) > 0 && !strings.HasPrefix(line, "***") {
		switch last := before[len(before)-1]; last.Kind {
		case Add:
			e.File, e.Hint = last.Path, addedHint
			return e
		case Delete:
			e.File, e.Hint = last.Path, "a delete has no lines of its own"
			return e
		}
	}
	e.Hint = fmt.Sprintf("sections begin with %q, %q or %q and a path", addHeader, updHeader, delHeader)
	if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "-") {
		e.Hint = fmt.Sprintf("changes to a file come after %q and its path", updHeader)
	}
	return e
}

func checkPath(path string) string {
	switch {
	case path == "":
		return "the path is missing"
	case strings.ContainsRune(path, 0):
		return "the path contains a NUL byte"
	case strings.HasSuffix(path, "/"):
		return "the path names a directory"
	}
	return ""
}

func (p *parser) added(s *Section) {
	var b strings.Builder
	for !p.done() {
		line := p.line()
		text, ok := strings.CutPrefix(line, "+")
		if !ok && !isUnterminated(line) {
			break
		}
		p.at++
		if !ok {
			s.Content = strings.TrimSuffix(b.String(), "\n")
			return
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	s.Content = b.String()
	// Meaningless here, and written by models that are used to it.
	if !p.done() && isEOF(p.line()) {
		p.at++
	}
}

func isUnterminated(line string) bool { return strings.HasPrefix(line, `\ No newline`) }
func isEOF(line string) bool          { return strings.TrimRight(line, " \t\r") == eofMarker }

func (p *parser) update(s *Section) error {
	if !p.done() {
		if to, ok := strings.CutPrefix(p.line(), moveHeader); ok {
			s.MoveTo = strings.TrimSpace(to)
			if err := checkPath(s.MoveTo); err != "" {
				return &Error{Line: p.number(), File: s.Path, Problem: "cannot move: " + err}
			}
			p.at++
		}
	}
	for {
		p.skipBeforeChunk(s)
		if p.done() || strings.HasPrefix(p.line(), "***") {
			break
		}
		chunk, err := p.chunk(s)
		if err != nil {
			return err
		}
		s.Chunks = append(s.Chunks, chunk)
	}
	if len(s.Chunks) == 0 {
		return &Error{Line: s.Line, File: s.Path, Problem: "the update has no changes", Hint: `an update needs at least one line that begins with " ", "-" or "+"`}
	}
	return nil
}

// skipBeforeChunk passes blank lines. The first chunk needs no "@@", so a line
// of a single space before it may already be its first context line.
func (p *parser) skipBeforeChunk(s *Section) {
	start := p.at
	p.skipBlank()
	if len(s.Chunks) > 0 || p.done() || strings.HasPrefix(p.line(), "@@") || strings.HasPrefix(p.line(), "***") {
		return
	}
	p.at = start
	for p.line() == "" {
		p.at++
	}
}

func (p *parser) chunk(s *Section) (Chunk, error) {
	var c Chunk
	start := p.number()
	for !p.done() && strings.HasPrefix(p.line(), "@@") {
		n := p.number()
		text := strings.TrimRight(strings.TrimPrefix(p.next()[2:], " "), " \t")
		if text != "" && !diffRange().MatchString(text) {
			c.Anchors = append(c.Anchors, Anchor{Text: text, Line: n})
		}
	}
	if len(s.Chunks) > 0 && p.number() == start {
		return c, &Error{Line: start, File: s.Path, Problem: fmt.Sprintf("expected \"@@\" or a section header, found %q", Clip(p.line())), Hint: lineHint}
	}
	for !p.done() && !c.AtEnd {
		if !p.chunkLine(&c) {
			break
		}
	}
	if len(c.Lines) > 0 {
		return c, nil
	}

	e := &Error{Line: p.number(), File: s.Path, Problem: "the change has no lines", Hint: lineHint}
	if !p.done() {
		e.Problem = fmt.Sprintf("expected a line of a change, found %q", Clip(p.line()))
	}
	return c, e
}

// chunkLine takes one line into the chunk; false leaves it to another section.
func (p *parser) chunkLine(c *Chunk) bool {
	line := p.line()
	switch {
	case isEOF(line) && len(c.Lines) > 0:
		c.AtEnd = true
	case isUnterminated(line) && len(c.Lines) > 0:
		op := c.Lines[len(c.Lines)-1].Op
		c.OldUnterminated = c.OldUnterminated || op != '+'
		c.NewUnterminated = c.NewUnterminated || op != '-'
	case line == "":
		c.Lines = append(c.Lines, Line{Op: ' ', Line: p.number()})
	case line[0] == ' ' || line[0] == '-' || line[0] == '+':
		c.Lines = append(c.Lines, Line{Op: line[0], Text: line[1:], Line: p.number()})
	default:
		return false
	}
	p.at++
	return true
}
