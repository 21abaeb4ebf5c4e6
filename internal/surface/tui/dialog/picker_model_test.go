package dialog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// naive is what a picker should be: a list that is looked through for every key.
type naivePicker struct {
	rows   []Row
	typed  string
	at     int
	chosen bool
}

func (n *naivePicker) shown() []Row {
	return slices.DeleteFunc(slices.Clone(n.rows), func(r Row) bool {
		text := strings.ToLower(strings.Join(r.Columns, "\n"))
		return slices.ContainsFunc(strings.Fields(strings.ToLower(n.typed)), func(w string) bool { return !strings.Contains(text, w) })
	})
}

func (n *naivePicker) selected() string {
	if shown := n.shown(); n.at < len(shown) {
		return shown[n.at].ID
	}
	return ""
}

func (n *naivePicker) move(by int) {
	n.at = max(min(n.at+by, len(n.shown())-1), 0)
	n.chosen = true
}

func (n *naivePicker) retype(s string) {
	if s != n.typed {
		n.typed, n.at, n.chosen = s, 0, false
	}
}

func (n *naivePicker) key(key string, page int) Pick {
	switch key {
	case "up":
		n.move(-1)
	case "down":
		n.move(1)
	case "pgup":
		n.move(-page)
	case "pgdown":
		n.move(page)
	case "home":
		n.move(-len(n.rows))
	case "end":
		n.move(len(n.rows))
	case "backspace":
		n.retype(n.typed[:max(len(n.typed)-1, 0)])
	case "esc":
		if n.typed == "" {
			return Pick{Used: true, Done: true}
		}
		n.retype("")
	case "enter":
		if id := n.selected(); id != "" {
			return Pick{Used: true, Done: true, ID: id}
		}
	case "space":
		n.retype(n.typed + " ")
	default:
		n.retype(n.typed + key)
	}
	return pickerUsed
}

func (n *naivePicker) set(rows []Row) {
	old, chosen := n.selected(), n.chosen
	n.rows, n.at = rows, 0
	shown := n.shown()
	at := slices.IndexFunc(shown, func(r Row) bool { return chosen && old != "" && r.ID == old })
	if !chosen || old == "" {
		at = slices.IndexFunc(shown, func(r Row) bool { return r.Marked })
	}
	n.at = max(at, 0)
}

func TestPickerEqualsNaiveOne(t *testing.T) {
	keys := strings.Fields("up down down pgup pgdown home end backspace esc enter space a b C")
	for seed := range uint64(longtest.Default(60, 25)) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		m, n := newPicker(), &naivePicker{}
		for i := range 200 {
			if rnd.IntN(8) == 0 {
				r := Row{ID: fmt.Sprint(i), Columns: []string{random(rnd), strings.ToUpper(random(rnd))}}
				m.Append(r)
				n.rows = append(slices.Clone(n.rows), r)
			}
			if rnd.IntN(30) == 0 {
				rows := slices.Clone(n.rows)
				rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
				if len(rows) > 0 {
					rows = rows[:1+rnd.IntN(len(rows))]
				}
				for j := range rows {
					rows[j].Marked = j == len(rows)/2
				}
				m.SetRows(rows)
				n.set(rows)
			}
			m.View(60, 5+rnd.IntN(10))
			key := keys[rnd.IntN(len(keys))]
			want := n.key(key, m.page)
			if got := pressPicker(m, key); got != want || m.selected() != n.selected() || m.len() != len(n.shown()) {
				t.Fatalf("seed %d, key %d, %s with filter %q: got %v at %q of %d, want %v at %q of %d",
					seed, i, key, n.typed, got, m.selected(), m.len(), want, n.selected(), len(n.shown()))
			}
		}
	}
}
