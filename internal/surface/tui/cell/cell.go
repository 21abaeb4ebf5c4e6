// Package cell draws the items of a transcript, each as a block of lines.
//
// [Render] draws any item as it is now; a [Live] draws one item again and again
// while it grows. Text of the model, of commands and of files is made harmless
// first: the only escape codes in a line are the theme's own.
package cell

import (
	"time"

	"github.com/fermata-agent/fermata/internal/surface/tui/markdown"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Options say how to draw.
type Options struct {
	Width    int // of the screen; no line is wider
	Theme    *theme.Theme
	Expanded bool      // show all of it
	Now      time.Time // for what still runs
	Dir      string    // paths below it are shown relative to it
}

// Render draws an item. It returns nothing if there is nothing to show.
func Render(it *transcript.Item, o Options) []string {
	text := it.Text
	if text == "" {
		text = it.CommandLine() + "\n" + it.Output
	}
	return markdown.Render(text, o.Width, o.Theme)
}

// Foldable reports whether the item looks different when it is expanded.
func Foldable(it *transcript.Item, o Options) bool { return false }

// A Live draws one item whenever it has changed. For a message that is being
// written the cost does not depend on how long it is. The zero value is ready.
type Live struct{}

// Render is [Render] for an item that may have grown since the last time. The
// lines are valid until the next call.
func (l *Live) Render(it *transcript.Item, o Options) []string { return Render(it, o) }
