package dialog

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// naive is what the keys of an approval should do.
type naive struct {
	at      int
	escaped bool
	writing bool
	words   string
}

var decisions = []p.Decision{p.Approved, p.ApprovedForSession, p.Denied, p.Abort}

func (n *naive) decide(d p.Decision) Answer {
	if d == p.Denied {
		n.writing = true
		return used
	}
	return Answer{Used: true, Done: true, Decision: d}
}

func (n *naive) write(key string) Answer {
	switch key {
	case "enter":
		return Answer{Used: true, Done: true, Decision: p.Denied, Message: strings.TrimSpace(n.words)}
	case "esc":
		n.writing = false
	case "backspace":
		if r := []rune(n.words); len(r) > 0 {
			n.words = string(r[:len(r)-1])
		}
	case "space":
		n.words += " "
	case "ctrl+j":
		n.words += "\n"
	case "tab", "ctrl+c":
		return Answer{}
	case "up", "down", "pgdown":
	default:
		n.words += key
	}
	return used
}

func (n *naive) key(key string) Answer {
	if n.writing {
		return n.write(key)
	}
	twice := n.escaped && key == "esc"
	n.escaped = key == "esc"
	if i := strings.Index("yans", key); i >= 0 && len(key) == 1 {
		return n.decide(decisions[i])
	}
	switch key {
	case "enter":
		return n.decide(decisions[n.at])
	case "up":
		n.at = (n.at + 3) % 4
	case "down", "tab":
		n.at = (n.at + 1) % 4
	case "esc":
		if twice {
			return n.decide(p.Abort)
		}
	case "ctrl+c", "ctrl+j", "backspace":
		return Answer{}
	}
	return used
}

func TestApprovalEqualsNaiveOne(t *testing.T) {
	keys := strings.Fields("y a n n n s enter up down tab esc esc esc x 字 space backspace ctrl+j ctrl+c pgdown")
	ended := map[p.Decision]int{}
	for seed := range uint64(longtest.Default(2000, 800)) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		m, n := NewApproval(noColour, command("make")), &naive{}
		m.View(80, 24)
		var trail []string
		for range 30 {
			key := keys[rnd.IntN(len(keys))]
			if (key == "up" || key == "down") && n.writing {
				continue // in a text of several lines they move
			}
			trail = append(trail, key)
			got, want := press(m, key), n.key(key)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d after %v (-want +got):\n%s", seed, trail, diff)
			}
			if got.Done {
				ended[got.Decision]++
				break
			}
		}
	}
	for _, d := range decisions {
		if ended[d] < 50 {
			t.Errorf("only %d runs ended with %s: %v", ended[d], d, ended)
		}
	}
}
