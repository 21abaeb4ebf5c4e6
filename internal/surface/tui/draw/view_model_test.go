package draw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// naive is the same view without any cleverness: every cell is drawn for every
// question.
type naive struct {
	w, h     int
	now      time.Time
	items    []*transcript.Item
	expanded bool
	differs  map[string]bool
	follow   bool
	cell     int // the top of the window
	line     int
}

func (m *naive) options(it *transcript.Item) Options {
	return Options{Width: m.w, Theme: mono, Now: m.now, Expanded: m.expanded != m.differs[it.ID]}
}

// all returns every line, where each cell begins, and the cell of each line.
func (m *naive) all() (lines []string, starts, owner []int) {
	for i, it := range m.items {
		starts = append(starts, len(lines))
		own := Item(it, m.options(it))
		if len(own) > 0 && i > 0 {
			own = append([]string{""}, own...)
		}
		for range own {
			owner = append(owner, i)
		}
		lines = append(lines, own...)
	}
	return lines, append(starts, len(lines)), owner
}

// offset is the number of the first line in the window.
func (m *naive) offset() int {
	lines, starts, _ := m.all()
	end := max(0, len(lines)-m.h)
	if !m.follow && len(m.items) > 0 {
		at := starts[m.cell] + min(m.line, max(0, starts[m.cell+1]-starts[m.cell]-1))
		if at < end {
			m.hold(at)
			return at
		}
	}
	m.follow = true
	return end
}

// hold makes a line the first of the window, whatever happens above.
func (m *naive) hold(at int) {
	lines, starts, owner := m.all()
	at = min(max(0, at), len(lines))
	if m.follow = at >= len(lines)-m.h; m.follow {
		return
	}
	m.cell = owner[at]
	m.line = at - starts[m.cell]
}

func (m *naive) window() []string {
	lines, _, _ := m.all()
	at := m.offset()
	out := append([]string{}, lines[at:min(len(lines), at+m.h)]...)
	for len(out) < m.h {
		out = append(out, "")
	}
	return out
}

func (m *naive) at(line int) string {
	_, _, owner := m.all()
	if n := m.offset() + line; n < len(owner) {
		return m.items[owner[n]].ID
	}
	return ""
}

func (m *naive) toggle() {
	_, starts, owner := m.all()
	at := m.offset()
	if len(owner) == 0 {
		return
	}
	first := owner[min(at, len(owner)-1)]
	last := owner[min(at+m.h, len(owner))-1]
	for i := last; i >= first; i-- {
		if it := m.items[i]; starts[i+1] > starts[i] && Foldable(it, m.options(it)) {
			m.differs[it.ID] = !m.differs[it.ID]
			return
		}
	}
}

// walk makes random steps on both.
type walk struct {
	*rand.Rand
	v *View
	m *naive
}

func (w *walk) step() string {
	if w.IntN(50) == 0 {
		w.v.Reset()
		w.m.items, w.m.follow, w.m.cell, w.m.line, w.m.differs = nil, true, 0, 0, map[string]bool{}
		return "reset"
	}
	switch w.IntN(14) {
	case 0, 1, 2:
		return w.put(len(w.m.items))
	case 3, 4:
		return w.put(w.IntN(len(w.m.items) + 1))
	case 5:
		w.m.w, w.m.h = 10+w.IntN(40), 1+w.IntN(15)
		w.v.SetSize(w.m.w, w.m.h)
		return fmt.Sprint("size ", w.m.w, w.m.h)
	case 6, 7:
		n := w.IntN(41) - 20
		w.v.ScrollBy(n)
		w.m.hold(w.m.offset() + n)
		return fmt.Sprint("scroll ", n)
	case 8:
		w.v.PageUp()
		w.m.hold(w.m.offset() - max(1, w.m.h-2))
		return "page up"
	case 9:
		w.v.PageDown()
		w.m.hold(w.m.offset() + max(1, w.m.h-2))
		return "page down"
	case 10:
		w.v.Top()
		w.m.hold(0)
		return "top"
	case 11:
		w.v.Bottom()
		w.m.follow = true
		return "bottom"
	case 12:
		w.v.Toggle(false)
		w.m.toggle()
		return "toggle"
	}
	w.v.Toggle(true)
	w.m.offset()
	w.m.expanded, w.m.differs = !w.m.expanded, map[string]bool{}
	return "toggle all"
}

func (w *walk) put(i int) string {
	var it *transcript.Item
	switch w.IntN(5) {
	case 0:
		it = windowCommand(i, transcript.Open, numbers(w.IntN(12)))
	case 1:
		it = windowCommand(i, transcript.Done, numbers(w.IntN(40)))
	case 2:
		it = message(i, "") // nothing to show
	default:
		it = message(i, strings.Repeat("some words ", w.IntN(12)))
	}
	if i == len(w.m.items) {
		w.m.items = append(w.m.items, it)
	} else {
		w.m.items[i] = it
	}
	w.v.Put(it)
	return fmt.Sprintf("put %d: %s %s, %d bytes", i, it.Kind, it.Status, len(it.Text)+len(it.Output))
}

func TestEqualsNaive(t *testing.T) {
	for seed := range uint64(longtest.Default(150, 50)) {
		w := &walk{rand.New(rand.NewPCG(seed, 1)), NewView(mono), &naive{w: 80, h: 24, now: now, differs: map[string]bool{}, follow: true}}
		w.v.now = now
		var steps []string
		for range 60 {
			steps = append(steps, w.step())
			want, got := w.m.window(), w.v.Lines(now)
			line := w.IntN(w.m.h)
			if d := cmp.Diff(want, got); d != "" || w.v.Following() != w.m.follow || w.v.At(line) != w.m.at(line) {
				t.Fatalf("seed %d: %s\nfollowing %v, want %v; at %d %q, want %q\n(-want +got):\n%s", seed, strings.Join(steps, "; "),
					w.v.Following(), w.m.follow, line, w.v.At(line), w.m.at(line), d)
			}
		}
		w.checkBelow(t)
	}
}

// checkBelow draws every cell, after which the number of lines below is exact.
func (w *walk) checkBelow(t *testing.T) {
	t.Helper()
	for i := range w.v.cells {
		w.v.draw(i)
	}
	lines, _, _ := w.m.all()
	if want := max(0, len(lines)-w.m.offset()-w.m.h); w.v.Below() != want {
		t.Fatalf("%d lines below, want %d", w.v.Below(), want)
	}
}

func TestHeights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var h heights
	var want []int
	for range 2000 {
		if len(want) == 0 || r.IntN(2) == 0 {
			n := r.IntN(100)
			h.add(n)
			want = append(want, n)
		} else {
			i, n := r.IntN(len(want)), r.IntN(100)
			h.set(i, n)
			want[i] = n
		}
		upTo := r.IntN(len(want) + 1)
		sum := 0
		for _, n := range want[:upTo] {
			sum += n
		}
		if got := h.sum(upTo); got != sum {
			t.Fatalf("sum of %d is %d, want %d", upTo, got, sum)
		}
	}
}
