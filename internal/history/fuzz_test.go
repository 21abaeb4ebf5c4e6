package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// kindsOf makes an event out of a number, with names so few that they meet.
var kindsOf = []func(at p.ItemID, n byte) p.Body{
	func(p.ItemID, byte) p.Body { return begin() },
	func(_ p.ItemID, n byte) p.Body {
		return &p.Configured{Settings: p.Settings{Cwd: fmt.Sprint("/", n%3)}}
	},
	func(p.ItemID, byte) p.Body { return &p.TurnStarted{} },
	func(_ p.ItemID, n byte) p.Body { return says(int(n), "u") },
	func(at p.ItemID, _ byte) p.Body { return request(at.Response) },
	func(at p.ItemID, n byte) p.Body { return &p.Reasoning{Item: at, Text: "t", Partial: n >= 240} },
	func(at p.ItemID, n byte) p.Body { return &p.AssistantMessage{Item: at, Text: "m", Partial: n >= 192} },
	func(at p.ItemID, n byte) p.Body {
		return &p.ToolCall{Call: at, WireID: fmt.Sprint("w", at.Index), Kind: p.CallKind(fmt.Sprint(n % 2)), Name: "sh"}
	},
	func(at p.ItemID, n byte) p.Body {
		return &p.ToolOutput{Call: at, Output: fmt.Sprint(n), Aborted: n >= 128}
	},
	func(at p.ItemID, n byte) p.Body { return &p.ToolOutput{Call: at, Output: "repaired", Repaired: true} },
	func(at p.ItemID, _ byte) p.Body { return over(at.Response) },
	func(p.ItemID, byte) p.Body { return &p.ModelRetry{} },
	func(_ p.ItemID, n byte) p.Body {
		reasons := []p.EndReason{p.Completed, p.Failed, p.Interrupted, p.Replaced, p.Crashed, "new"}
		return &p.TurnEnded{Reason: reasons[int(n)%len(reasons)], Elapsed: time.Second}
	},
	func(at p.ItemID, _ byte) p.Body { return &p.Reverted{Before: at.Turn} },
	func(_ p.ItemID, n byte) p.Body { return &p.Compacted{Summary: fmt.Sprint(n)} },
	func(p.ItemID, byte) p.Body { return &p.Unknown{Kind: "new"} },
	func(at p.ItemID, _ byte) p.Body { return &p.Undone{Of: at.Turn} },
	func(p.ItemID, byte) p.Body { return &p.TurnStarted{Shell: true} },
	func(at p.ItemID, n byte) p.Body {
		return &p.ToolCall{Call: p.CallID{Turn: at.Turn, Index: 1}, WireID: "w1", Kind: p.CallFunction, Name: "user_shell"}
	},
	func(at p.ItemID, n byte) p.Body {
		return &p.ToolOutput{Call: p.CallID{Turn: at.Turn, Index: 1}, Aborted: n >= 128}
	},
	func(at p.ItemID, n byte) p.Body { return &p.BackgroundStarted{ID: p.BackgroundID(n & 3), Call: at} },
	func(_ p.ItemID, n byte) p.Body {
		return &p.BackgroundEnded{ID: p.BackgroundID(n & 3), Reason: []p.EndReason{p.Completed, p.Crashed}[n>>7]}
	},
}

// A handed is a prompt as it was when it was handed out.
type handed struct {
	items []*p.PromptItem
	was   []string
}

// try folds the events that data stands for, two bytes each, and checks the
// prompt whenever it is asked for.
func try(data []byte) error {
	var h history.History
	var kept []handed
	for ; len(data) >= 2; data = data[2:] {
		n := data[1]
		at := p.ItemID{Turn: p.TurnID(1 + n&1), Response: 1 + int(n>>1)&1, Index: int(n>>2) & 3}
		if k := int(data[0]) % (len(kindsOf) + 3); k < len(kindsOf) {
			h.Apply(p.Event{Turn: at.Turn, Body: kindsOf[k](at, n)})
			continue
		}
		if _, answered, ok := h.Find(fmt.Sprint("w", at.Index)); answered && !ok {
			return fmt.Errorf("a call that is not there is answered")
		}
		items := h.Items()
		if err := valid(items, anyOrder); err != nil {
			return fmt.Errorf("%w\n%s", err, strings.Join(lines(items), "\n"))
		}
		kept = append(kept, handed{items, lines(items)})
	}
	items := h.Items()
	if err := valid(items, anyOrder); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(lines(items), "\n"))
	}
	for _, k := range kept {
		if !slices.Equal(k.was, lines(k.items)) {
			return fmt.Errorf("a prompt that was handed out changed:\n%s", cmp.Diff(k.was, lines(k.items)))
		}
	}
	return nil
}

// script writes the bytes that stand for events, for people.
func script(data []byte) string {
	var b strings.Builder
	for ; len(data) >= 2; data = data[2:] {
		n := data[1]
		at := p.ItemID{Turn: p.TurnID(1 + n&1), Response: 1 + int(n>>1)&1, Index: int(n>>2) & 3}
		if k := int(data[0]) % (len(kindsOf) + 3); k < len(kindsOf) {
			body := kindsOf[k](at, n)
			fmt.Fprintf(&b, "turn %d %s %+v\n", at.Turn, p.Kind(body), body)
			continue
		}
		b.WriteString("Items\n")
	}
	return b.String()
}

// FuzzPrompt feeds events that make no sense: whatever they are, the prompt is
// one that a provider takes.
func FuzzPrompt(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 3, 0, 4, 0, 7, 0, 7, 4, 10, 0, 8, 4, 8, 0, 4, 2, 17, 0})
	f.Add([]byte{0, 0, 4, 0, 7, 0, 4, 2, 7, 2, 9, 0, 6, 2, 17, 0})
	f.Add([]byte{4, 0, 7, 0, 13, 1, 5, 0, 6, 4, 17, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		if err := try(data); err != nil {
			t.Errorf("%v\n%s", err, script(data))
		}
	})
}

// The same with random bytes, so that every test run tries some.
func TestAnyEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range longtest.Default(20_000, 7000) {
		data := make([]byte, 2*(4+r.IntN(26)))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if err := try(data); err != nil {
			t.Fatalf("%v\n%s", err, script(data))
		}
	}
}
