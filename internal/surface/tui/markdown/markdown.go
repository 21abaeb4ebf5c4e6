// Package markdown draws Markdown as lines of text with colours.
//
// [Render] draws a whole text, a [Stream] one that grows. Both cut the text into
// top-level blocks by the same rule, which never looks ahead, and draw each by
// itself: so they cannot disagree, and a piece of text that arrives costs no more
// at the end of a long answer than at its beginning.
package markdown

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/tui/plain"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// Render draws src, no line wider than width. The text may come from anybody:
// control characters and escape sequences in it are taken out.
func Render(src string, width int, t *theme.Theme) []string {
	s := NewStream(width, t)
	s.Write(src)
	return s.Lines()
}

// A Stream draws a text that grows. Make one with [NewStream].
type Stream struct {
	width int
	theme *theme.Theme
	src   strings.Builder
}

// NewStream returns an empty stream.
func NewStream(width int, t *theme.Theme) *Stream { return &Stream{width: width, theme: t} }

// Write adds text. It draws nothing yet.
func (s *Stream) Write(text string) { s.src.WriteString(text) }

// Len is the number of bytes written.
func (s *Stream) Len() int { return s.src.Len() }

// Lines draws what is new and returns all lines, which are valid until the next
// Write. They are what [Render] returns for the whole text.
func (s *Stream) Lines() []string {
	lines := plain.Wrap(plain.Clean(s.src.String()), s.width)
	for i := range lines {
		lines[i] = plain.Fit(lines[i], s.width)
	}
	return lines
}
