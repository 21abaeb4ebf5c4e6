package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

// exchange is one turn: a message, a call with its output, an answer. It adds
// four items and asks for the prompt twice, as the owner does.
func exchange(h *history.History, turn p.TurnID) []*p.PromptItem {
	call := p.CallID{Turn: turn, Response: 1}
	next := func(b p.Body) { h.Apply(p.Event{Turn: turn, Body: b}) }
	next(&p.TurnStarted{})
	next(&p.UserMessage{Content: text})
	next(&p.ModelRequested{Response: 1})
	h.Items()
	next(&p.ToolCall{Call: call, WireID: "call_1", Kind: p.CallFunction, Name: "shell", Arguments: `{"command":["ls"]}`})
	next(&p.ModelEnded{Response: 1})
	next(&p.ToolOutput{Call: call, Output: printed})
	next(&p.ModelRequested{Response: 2})
	items := h.Items()
	next(&p.AssistantMessage{Item: p.ItemID{Turn: turn, Response: 2}, Text: "done"})
	next(&p.ModelEnded{Response: 2})
	next(&p.TurnEnded{Reason: p.Completed})
	return items
}

var (
	text    = p.Text("please do it")
	printed = strings.Repeat("a line of output\n", 30)
)

// long returns a history with n items, and its last turn.
func long(n int) (*history.History, p.TurnID) {
	h := build(begin())
	turn := p.TurnID(0)
	for h.Len() < n {
		turn++
		exchange(h, turn)
	}
	return h, turn
}

// BenchmarkPrompt is what one more turn costs in a conversation of n items. So
// that it stays that long, what was added is reverted when it has doubled; that
// is part of the figure, and as it is done once in n times, the same for all n.
func BenchmarkPrompt(b *testing.B) {
	for _, n := range []int{10, 50, 200, 1000, 10000} {
		b.Run(fmt.Sprintf("items_%d", n), func(b *testing.B) {
			h, base := long(n)
			turn := base
			b.ReportAllocs()
			for b.Loop() {
				turn++
				exchange(h, turn)
				if h.Len() > 2*n {
					h.Apply(p.Event{Body: &p.Reverted{Before: base + 1}})
				}
			}
		})
	}
}

// BenchmarkItems is what asking for the prompt alone costs.
func BenchmarkItems(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("items_%d", n), func(b *testing.B) {
			h, _ := long(n)
			b.ReportAllocs()
			for b.Loop() {
				h.Items()
			}
		})
	}
}

// BenchmarkCheckpoint is what saving 10,000 items costs, and reading them back
// at once (open) and when they are needed (first use).
func BenchmarkCheckpoint(b *testing.B) {
	h, _ := long(10000)
	data := save(b, h)
	b.Run("save", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			save(b, h)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			restore(b, data)
		}
	})
	b.Run("open_and_first_use", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if got := restore(b, data).Len(); got < 10000 {
				b.Fatalf("%d items", got)
			}
		}
	})
	b.Run("open_and_save_again", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			save(b, restore(b, data))
		}
	})
}
