package draw

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// A liveItem draws one item whenever it has changed. For a message that is being
// written the cost does not depend on how long it is. The zero value is ready.
type liveItem struct {
	stream *markdownStream
	width  int
	theme  *theme.Theme
	seen   string // what the stream has been given
}

// Render is [Item] for an item that may have grown since the last time. The
// lines are valid until the next call.
func (l *liveItem) Render(it *transcript.Item, o Options) []string {
	if it.Kind != transcript.Message {
		return Item(it, o)
	}
	if l.stream == nil || l.width != o.Width || l.theme != o.Theme || !strings.HasPrefix(it.Text, l.seen) {
		*l = liveItem{stream: newMarkdownStream(o.Width, o.Theme), width: o.Width, theme: o.Theme}
	}
	l.stream.Write(it.Text[len(l.seen):])
	l.seen = it.Text
	p := &pen{Options: o, lines: l.stream.Lines()}
	p.cutMark(it)
	return p.lines
}
