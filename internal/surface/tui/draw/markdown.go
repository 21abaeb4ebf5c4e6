package draw

import (
	"bytes"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// Markdown draws src, no line wider than width. The text is split into top-level
// blocks by a rule that never looks ahead, and each is drawn by itself: so a
// markdownStream, which splits by the same rule, cannot disagree, and text that
// arrives costs no more at the end of a long answer than at its beginning. The
// price: a link cannot refer to a definition in another block. The text is not trusted:
// control characters and escape sequences in it are taken out. Line breaks within
// a paragraph are kept, as people expect who write to each other.
func Markdown(src string, width int, t *theme.Theme) []string {
	s := newMarkdownStream(width, t)
	s.Write(src)
	return s.Lines()
}

// A markdownStream draws a text that grows.
type markdownStream struct {
	whole drawing // of the lines that have ended
	part  []byte  // the line that has not
	shown []string
	fresh bool // shown is what there is to show
	size  int
}

// newMarkdownStream returns an empty stream.
func newMarkdownStream(width int, t *theme.Theme) *markdownStream {
	return &markdownStream{whole: drawing{width: max(1, width), theme: t}}
}

// Write adds text.
func (s *markdownStream) Write(text string) {
	if text == "" {
		return
	}
	s.size += len(text)
	s.fresh = false
	s.part = append(s.part, text...)
	for {
		i := bytes.IndexByte(s.part, '\n')
		if i < 0 {
			return
		}
		s.whole.line(safetext.Line(string(s.part[:i])))
		s.part = s.part[i+1:]
	}
}

// Len is the number of bytes written.
func (s *markdownStream) Len() int { return s.size }

// Lines draws what is new and returns all lines, which are valid until the next
// Write. They are what [Render] returns for the whole text.
func (s *markdownStream) Lines() []string {
	if s.fresh {
		return s.shown
	}
	end := s.whole // a copy, in which the text ends here
	if len(s.part) > 0 {
		end.line(safetext.Line(string(s.part)))
	}
	end.close(noGap)
	// What was added lies behind the lines that are settled and will be written
	// over. Keeping the room saves copying all lines each time.
	s.whole.out = end.out[:len(s.whole.out)]
	s.shown, s.fresh = end.out, true
	if len(s.shown) == 0 {
		s.shown = nil
	}
	return s.shown
}
