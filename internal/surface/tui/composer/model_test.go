package composer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	p "github.com/fermata-agent/fermata/protocol"
)

// naive is what a composer should be, for text of one column a character on a
// screen without end.
type naive struct {
	text    string
	cur     int
	goal    int // -1 for none
	entries []string
	back    int
	draft   string
	fresh   bool
	sent    []Action
}

func (n *naive) put(s string) {
	n.text = n.text[:n.cur] + s + n.text[n.cur:]
	n.cur += len(s)
	n.leave()
}

func (n *naive) leave() { n.back, n.fresh, n.goal = 0, false, -1 }

// place returns the cursor's line and column.
func (n *naive) place() (line, column int) {
	before := n.text[:n.cur]
	return strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n") - 1
}

// vertical moves to another line, if there is one.
func (n *naive) vertical(step int) bool {
	lines := strings.Split(n.text, "\n")
	line, column := n.place()
	if line+step < 0 || line+step >= len(lines) {
		return false
	}
	if n.goal < 0 {
		n.goal = column
	}
	n.cur = min(n.goal, len(lines[line+step]))
	for _, l := range lines[:line+step] {
		n.cur += len(l) + 1
	}
	return true
}

func (n *naive) recall(step int) {
	shown := n.text
	for back := n.back + step; back >= 0 && back <= len(n.entries); back += step {
		text := n.draft
		if back > 0 {
			text = n.entries[len(n.entries)-back]
			if text == shown {
				continue
			}
		}
		if n.back == 0 {
			n.draft = n.text
		}
		n.text, n.cur, n.goal = text, len(text), -1
		n.back, n.fresh = back, back > 0
		return
	}
}

func (n *naive) send(mode p.WhenBusy) {
	text := strings.TrimRight(n.text, " \n")
	if strings.TrimSpace(text) == "" {
		return
	}
	n.sent = append(n.sent, Submit{Text: strings.TrimLeft(text, "\n"), Mode: mode})
	if len(n.entries) == 0 || n.entries[len(n.entries)-1] != text {
		n.entries = append(n.entries, text)
	}
	n.text, n.cur, n.draft = "", 0, ""
	n.leave()
}

func (n *naive) key(name string, busy bool) {
	switch name {
	case "left":
		n.cur = max(n.cur-1, 0)
		n.leave()
	case "right":
		n.cur = min(n.cur+1, len(n.text))
		n.leave()
	case "home":
		_, column := n.place()
		n.cur -= column
		n.leave()
	case "backspace":
		if n.cur > 0 {
			n.text = n.text[:n.cur-1] + n.text[n.cur:]
			n.cur--
		}
		n.leave()
	case "up", "down":
		step := map[string]int{"up": -1, "down": 1}[name]
		if n.fresh || !n.vertical(step) {
			n.recall(-step)
		}
	case "enter":
		n.send(p.Steer)
	case "ctrl+s":
		n.send(p.Replace)
	case "tab":
		if busy {
			n.send(p.Queue)
		}
	case "alt+enter":
		if busy {
			n.send(p.Queue)
		} else {
			n.put("\n")
		}
	case "ctrl+j":
		n.put("\n")
	case "space":
		n.put(" ")
	default:
		n.put(name)
	}
}

func TestComposerEqualsNaiveOne(t *testing.T) {
	keys := strings.Fields("a b c a b c space ctrl+j left right home backspace up up up down down enter enter ctrl+s tab alt+enter")
	for seed := range uint64(longtest.Default(100, 40)) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		d := newDesk(t, "old", "two\nlines", "old")
		d.c.View(10_000, 50)
		n := &naive{goal: -1, entries: []string{"old", "two\nlines", "old"}}
		var trail []string
		for range 300 {
			key := keys[rnd.IntN(len(keys))]
			if rnd.IntN(40) == 0 {
				d.c.SetBusy(!d.c.busy)
			}
			trail = append(trail, key)
			d.press(key)
			n.key(key, d.c.busy)
			line, column := n.place()
			if d.c.Text() != n.text || d.c.buf.Cursor() != (edit.Pos{Line: line, Off: column}) {
				t.Fatalf("seed %d after %v:\ngot  %q at %v\nwant %q at %d,%d", seed, trail, d.c.Text(), d.c.buf.Cursor(), n.text, line, column)
			}
		}
		if diff := cmp.Diff(n.sent, d.actions); diff != "" {
			t.Fatalf("seed %d: sent (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(n.entries, d.history.entries); diff != "" {
			t.Fatalf("seed %d: history (-want +got):\n%s", seed, diff)
		}
	}
}
