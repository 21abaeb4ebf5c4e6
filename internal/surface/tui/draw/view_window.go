package draw

import (
	"time"

	"github.com/fermata-agent/fermata/internal/transcript"
)

// An entry is a cell and how it was last drawn.
type entry struct {
	it      *transcript.Item
	stale   bool // it has changed since
	differs bool // it is expanded and the others are not, or the other way round

	live  *liveItem
	lines []string
	gap   int // 1 if an empty line goes before it
	has   bool
	epoch int
	now   time.Time
}

func (e *entry) height() int { return e.gap + len(e.lines) }

// appendTo adds the lines of the cell but for the first skip, as long as there
// are fewer than most.
func (e *entry) appendTo(out []string, skip, most int) []string {
	if skip < e.gap && len(out) < most {
		out = append(out, "")
	}
	from := min(max(0, skip-e.gap), len(e.lines))
	to := min(len(e.lines), from+most-len(out))
	return append(out, e.lines[from:max(from, to)]...)
}

// aging reports whether the cell shows how long it has been at work.
func (e *entry) aging() bool {
	return e.it.Status == transcript.Open && e.it.Kind != transcript.Message
}

func (v *View) options(e *entry) Options {
	return Options{Width: v.w, Theme: v.theme, Expanded: v.expanded != e.differs, Now: v.now, Dir: v.dir, Opener: v.opener, HideReasoning: v.hideReasoning}
}

// draw makes sure that a cell is drawn as it is now, and returns its height.
func (v *View) draw(i int) int {
	if i < 0 || i >= len(v.cells) {
		return 0
	}
	e := v.cells[i]
	if e.has && !e.stale && e.epoch == v.epoch && (!e.aging() || e.now.Equal(v.now)) {
		return e.height()
	}
	if e.live == nil {
		e.live = &liveItem{}
	}
	before := len(e.lines)
	e.lines = e.live.Render(e.it, v.options(e))
	e.gap = 0
	if len(e.lines) > 0 && i > 0 {
		e.gap = 1
	}
	if !e.has {
		v.drawn = append(v.drawn, i)
	}
	e.has, e.stale, e.epoch, e.now = true, false, v.epoch, v.now
	v.lines += len(e.lines) - before
	v.heights.set(i, e.height())
	return e.height()
}

// settle finds the top of the window: at the end if it follows, and no further
// down than there is something to show.
func (v *View) settle() {
	if !v.follow {
		if h := v.draw(v.top.cell); v.top.line >= h {
			v.top.line = max(0, h-1)
		}
		v.hold()
	}
	if v.follow {
		v.top = v.end()
	}
}

// hold makes the top a line that exists, for a line beyond its cell is one of the
// next, and follows the end if that is there already.
func (v *View) hold() {
	for v.top.cell < len(v.cells)-1 && v.top.line >= v.draw(v.top.cell) {
		v.top.line -= v.draw(v.top.cell)
		v.top.cell++
	}
	v.follow = v.atEnd()
}

// end is the top of the window that shows the last line.
func (v *View) end() place {
	n := 0
	for i := len(v.cells) - 1; i >= 0; i-- {
		if n += v.draw(i); n >= v.h {
			return place{i, n - v.h}
		}
	}
	return place{}
}

// atEnd reports whether nothing is below the window.
func (v *View) atEnd() bool {
	n := -v.top.line
	for i := v.top.cell; i < len(v.cells); i++ {
		if n += v.draw(i); n > v.h {
			return false
		}
	}
	return true
}

// last is the last cell in the window.
func (v *View) last() int {
	n := -v.top.line
	for i := v.top.cell; i < len(v.cells); i++ {
		if n += v.draw(i); n >= v.h {
			return i
		}
	}
	return len(v.cells) - 1
}

// What may be kept of cells that are not in the window.
const (
	maxCells = 400
	maxLines = 20_000
)

// forget drops the lines of the cells drawn longest ago while there are too
// many, but for those in the window and the last.
func (v *View) forget(from, to int) {
	for n := len(v.drawn); n > 0 && (len(v.drawn) > maxCells || v.lines > maxLines); n-- {
		i := v.drawn[0]
		v.drawn = v.drawn[1:]
		if i >= from && i <= to || i == len(v.cells)-1 {
			v.drawn = append(v.drawn, i)
			continue
		}
		e := v.cells[i]
		v.lines -= len(e.lines)
		e.lines, e.live, e.has = nil, nil, false
	}
}
