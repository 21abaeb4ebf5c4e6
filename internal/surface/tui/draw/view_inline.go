package draw

import (
	"time"

	"github.com/fermata-agent/fermata/internal/transcript"
)

// Take takes what is finished out of the view and returns its lines, each item followed by an
// empty one: it belongs to the terminal then, and what changes about it is not shown. Items
// keep their order, except that a background command does not keep back what comes after it.
func (v *View) Take(now time.Time) []string {
	v.now = now
	var out []string
	var rest []*entry
	blocked := false
	for i, e := range v.cells {
		open := e.it.Status == transcript.Open || e.it.Status == transcript.Asking
		if open || blocked {
			blocked = blocked || e.it.Kind != transcript.Background
			rest = append(rest, e)
			continue
		}
		v.draw(i)
		if len(e.lines) > 0 {
			out = append(append(out, e.lines...), "")
		}
		if v.taken == nil {
			v.taken = map[string]bool{}
		}
		v.taken[e.it.ID] = true
	}
	if len(rest) < len(v.cells) {
		v.keep(rest)
	}
	return out
}

// Empty reports whether there are no cells, or none that was not taken.
func (v *View) Empty() bool { return len(v.cells) == 0 }

// keep leaves only some of the cells in the view.
func (v *View) keep(list []*entry) {
	taken := v.taken
	v.Reset()
	v.taken = taken
	for i, e := range list {
		e.has, e.stale = false, true
		v.cells, v.byID[e.it.ID] = append(v.cells, e), i
		v.heights.add(estimate)
	}
}

// Height is how many lines all cells have.
func (v *View) Height(now time.Time) int {
	v.now = now
	n := 0
	for i := range v.cells {
		n += v.draw(i)
	}
	return n
}

// Rest draws all cells, whatever the size of the window.
func (v *View) Rest(now time.Time) []string {
	h := v.h
	v.h = v.Height(now)
	lines := v.Lines(now)
	v.h = h
	return lines
}
