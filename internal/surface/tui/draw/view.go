package draw

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// A View is a list of items and a window on it. It belongs to one goroutine.
//
// Only what is in the window is drawn. The window is held by an item and a line
// within it, so that nothing above or below has to be known to draw it, and what
// arrives below does not move what one reads. Of items far from the window only
// the height is remembered.
type View struct {
	theme *theme.Theme
	dir   string
	w, h  int

	opener        string
	hideReasoning bool

	now time.Time

	cells    []*entry
	byID     map[string]int
	heights  heights // of all cells; of those not drawn at this width by estimate
	expanded bool    // unless a cell says otherwise
	epoch    int     // grows when everything looks different

	follow bool
	top    place // of the window; if it follows, as of the last drawing

	taken map[string]bool // items that Take has returned

	drawn []int // cells that have lines, the longest first
	lines int   // how many they have
}

// A place is a line of a cell.
type place struct{ cell, line int }

// NewView returns an empty view that follows its end. Give it a size before use.
func NewView(t *theme.Theme) *View {
	return &View{theme: t, w: 80, h: 24, byID: map[string]int{}, follow: true, epoch: 1}
}

// SetTheme changes the colours.
func (v *View) SetTheme(t *theme.Theme) {
	if t != v.theme {
		v.theme = t
		v.epoch++
	}
}

// SetLinks makes file names links to a program that opens them, if there is one.
func (v *View) SetLinks(opener string) { v.opener = opener }

// HideReasoning leaves out what the model thought.
func (v *View) HideReasoning() { v.hideReasoning = true }

// SetDir sets the directory below which paths are shown relative to it.
func (v *View) SetDir(dir string) {
	if dir != v.dir {
		v.dir = dir
		v.epoch++
	}
}

// SetSize sets the size of the window. What is at its top stays there, unless it
// follows the end.
func (v *View) SetSize(w, h int) {
	w, h = max(1, w), max(0, h)
	if w != v.w {
		v.w = w
		v.epoch++
	}
	v.h = h
}

// estimate is the height of a cell that was never drawn.
const estimate = 4

// Put adds an item at the end, or notes that it has changed. It draws nothing.
func (v *View) Put(it *transcript.Item) {
	if v.taken[it.ID] {
		return
	}
	if i, ok := v.byID[it.ID]; ok {
		v.cells[i].it, v.cells[i].stale = it, true
		return
	}
	v.byID[it.ID] = len(v.cells)
	v.cells = append(v.cells, &entry{it: it, stale: true})
	v.heights.add(estimate)
}

// Reset takes all items out, and follows the end again.
func (v *View) Reset() {
	v.cells, v.byID, v.heights, v.drawn, v.lines = nil, map[string]int{}, heights{}, nil, 0
	v.follow, v.top, v.taken = true, place{}, nil
}

// Lines draws the window: exactly as many lines as it is high. The slice is the
// caller's.
func (v *View) Lines(now time.Time) []string {
	v.now = now
	v.settle()
	out := make([]string, 0, v.h)
	last := v.top.cell
	for i, skip := v.top.cell, v.top.line; i < len(v.cells) && len(out) < v.h; i++ {
		v.draw(i)
		out = v.cells[i].appendTo(out, skip, v.h)
		last, skip = i, 0
	}
	for len(out) < v.h {
		out = append(out, "")
	}
	if !v.follow {
		v.draw(len(v.cells) - 1) // it grows, and Below says by how much
	}
	v.forget(v.top.cell, last)
	return out
}

// ScrollBy moves the window by n lines, down if n is positive. At the last line
// it follows the end from then on.
func (v *View) ScrollBy(n int) {
	v.settle()
	v.top.line += n
	for v.top.line < 0 && v.top.cell > 0 {
		v.top.cell--
		v.top.line += v.draw(v.top.cell)
	}
	v.top.line = max(0, v.top.line)
	v.hold()
}

// ScrollUp moves the window up by n lines. It reports whether it was at the top already, and not because all fits.
func (v *View) ScrollUp(n int) (atTop bool) {
	before := v.Below()
	v.ScrollBy(-n)
	return v.Below() == before && !v.follow
}

// Wheel scrolls. It reports whether the user wants to see what comes before the first line.
func (v *View) Wheel(msg tea.MouseWheelMsg) (earlier bool) {
	switch msg.Button {
	case tea.MouseWheelUp:
		return v.ScrollUp(wheel)
	case tea.MouseWheelDown:
		v.ScrollBy(wheel)
	}
	return false
}

// Key scrolls, folds and unfolds. It reports whether the user wants to see what comes before the first line.
func (v *View) Key(name string) (earlier bool) {
	switch name {
	case "ctrl+o":
		v.Toggle(false)
	case "alt+o":
		v.Toggle(true)
	case "pgup", "shift+up":
		return v.ScrollUp(v.page())
	case "pgdown", "shift+down":
		v.PageDown()
	case "ctrl+home", "home":
		v.Top()
		return true
	case "ctrl+end", "end":
		v.Bottom()
	}
	return false
}

// PageUp moves the window up by its height less two lines.
func (v *View) PageUp() { v.ScrollBy(-v.page()) }

// PageDown moves the window down by its height less two lines.
func (v *View) PageDown() { v.ScrollBy(v.page()) }

func (v *View) page() int { return max(1, v.h-2) }

// Top moves the window to the first line.
func (v *View) Top() {
	v.top = place{}
	v.hold()
}

// Bottom moves the window to the last line and follows it.
func (v *View) Bottom() { v.follow = true }

// Following reports whether the window stays at the end as it grows.
func (v *View) Following() bool { return v.follow }

// Below is the number of lines below the window. Cells that have not been drawn
// at this width are counted by estimate.
func (v *View) Below() int {
	if v.follow {
		return 0
	}
	n := len(v.cells)
	return max(1, v.heights.sum(n)-v.heights.sum(v.top.cell)-v.top.line-v.h)
}

// Toggle expands or folds the foldable cell nearest to the bottom of the window,
// or all cells.
func (v *View) Toggle(all bool) {
	v.settle()
	if all {
		v.expanded = !v.expanded
		v.epoch++
		for _, e := range v.cells {
			e.differs = false
		}
		return
	}
	for i := v.last(); i >= v.top.cell && i >= 0; i-- {
		if e := v.cells[i]; Foldable(e.it, v.options(e)) {
			e.differs, e.stale = !e.differs, true
			return
		}
	}
}

// At returns the id of the item on a line of the window, or "".
func (v *View) At(line int) string {
	if line < 0 || line >= v.h {
		return ""
	}
	v.settle()
	line += v.top.line
	for i := v.top.cell; i < len(v.cells); i++ {
		if line -= v.draw(i); line < 0 {
			return v.cells[i].it.ID
		}
	}
	return ""
}
