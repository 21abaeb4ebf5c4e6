package tui

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	wire "github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// happenings are the events of a conversation with so many items.
func happenings(items int) []p.Event {
	var list []p.Event
	add := func(turn p.TurnID, b p.Body) {
		list = append(list, p.Event{Seq: p.Seq(len(list) + 1), Time: time.Unix(int64(len(list)), 0), Turn: turn, Body: b})
	}
	add(0, &p.ConversationStarted{Settings: p.Settings{Cwd: "/w", Model: "puppet"}})
	for turn := p.TurnID(1); int(turn)*4 <= items; turn++ {
		call := p.CallID{Turn: turn, Response: 1, Index: 1}
		add(turn, &p.TurnStarted{})
		add(turn, &p.UserMessage{Item: p.ItemID{Turn: turn}, Content: p.Text(fmt.Sprintf("question %d", turn))})
		add(turn, &p.ModelRequested{Response: 1})
		add(turn, &p.ToolCall{Call: call, Name: "shell", Arguments: "{}"})
		add(turn, &p.ModelEnded{Response: 1, Usage: &p.Usage{Input: 10, Output: 1, Total: 11}})
		add(turn, &p.CommandStarted{Call: call, Command: []string{"bash", "-lc", "go test ./..."}})
		add(turn, &p.ToolOutput{Call: call, Command: &p.CommandResult{Output: strings.Repeat("ok  example.com/pkg 0.1s\n", 20)}})
		add(turn, &p.AssistantMessage{Item: p.ItemID{Turn: turn, Response: 2}, Text: "It **works**:\n\n```go\nfunc f() error { return nil }\n```\n\n- one\n- two\n"})
		add(turn, &p.Notice{Text: "noted"})
		add(turn, &p.TurnEnded{Reason: p.Completed})
	}
	return list
}

func noSettings(context.Context) (p.Settings, error) { return p.Settings{}, nil }

// filled is a program that shows a conversation with so many items, in which a
// message is being written.
func filled(b *testing.B, items int) *model {
	b.Helper()
	m := newModel(b.Context(), Options{
		Options: client.Options{Settings: noSettings}, Dir: "/w", Color: true, Dark: true,
	})
	m.conv.ID, m.conv.Feed = "x", &client.Feed{}
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 50})
	events := happenings(items)
	turn := p.TurnID(items)
	events = append(events, p.Event{Seq: p.Seq(len(events) + 1), Turn: turn, Body: &p.TurnStarted{}})
	m.Update(client.Batch{From: m.conv.Feed, Events: events})
	m.View()
	return m
}

// BenchmarkFrame is one frame while 20,000 deltas a second arrive: the batch of
// 16 ms is folded, and the screen is drawn.
func BenchmarkFrame(b *testing.B) {
	const perFrame = 20_000 * 16 / 1000
	for _, items := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(items, " items"), func(b *testing.B) {
			m := filled(b, items)
			item := p.ItemID{Turn: p.TurnID(items), Response: 1}
			offset := int64(0)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; b.Loop(); n++ {
				if n%1000 == 999 { // a message of 1.9 MB is long enough
					item.Index++
					offset = 0
				}
				var text strings.Builder // put together by the feed
				for i := range perFrame {
					if i%40 == 39 {
						text.WriteString("end.\n\n")
					} else {
						text.WriteString("word ")
					}
				}
				d := p.Delta{Item: item, Kind: p.DeltaMessage, Offset: offset, Text: text.String()}
				offset += int64(text.Len())
				m.Update(client.Batch{From: m.conv.Feed, Events: []p.Event{{Turn: item.Turn, Body: &d}}})
				m.View()
			}
			b.ReportMetric(float64(perFrame)*float64(b.N)/b.Elapsed().Seconds(), "deltas/s")
		})
	}
}

// BenchmarkKey is a key press and the frame after it.
func BenchmarkKey(b *testing.B) {
	for _, items := range []int{10, 10_000} {
		b.Run(fmt.Sprint(items, " items"), func(b *testing.B) {
			m := filled(b, items)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				m.Update(press([]string{"a", "backspace"}[n%2]))
				m.View()
			}
		})
	}
}

// BenchmarkScroll goes through the whole history by pages and back.
func BenchmarkScroll(b *testing.B) {
	m := filled(b, 10_000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		m.Update(press([]string{"pgup", "pgdown"}[n/500%2]))
		m.View()
	}
}

// BenchmarkFill folds and shows a conversation of 10,000 items, and reports what
// that holds in memory.
func BenchmarkFill(b *testing.B) {
	before := heap()
	var m *model
	for b.Loop() {
		m = filled(b, 10_000)
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	runtime.KeepAlive(m)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// talker is a model that has a tool print a lot, and the tool.
type talker struct{ text string }

func (t talker) Stream(_ context.Context, pr wire.Prompt, sink wire.Sink) (wire.End, error) {
	if pr.Items[len(pr.Items)-1].Kind == p.PromptOutput {
		sink.Done(0, &p.AssistantMessage{Text: "the end"})
	} else {
		sink.Done(0, &p.ToolCall{WireID: "c", Kind: p.CallFunction, Name: "work", Arguments: "{}"})
	}
	return wire.End{Usage: &p.Usage{Input: 1, Output: 1, Total: 2}}, nil
}

func (t talker) Spec() wire.ToolSpec { return wire.ToolSpec{Name: "work", Kind: p.CallFunction} }
func (t talker) ReadOnly() bool      { return false }

func (t talker) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Output: p.ToolOutput{Output: p.Shorten(t.text), Command: &p.CommandResult{Output: t.text}}}
}

// long makes a conversation of so many megabytes on disk.
func long(b *testing.B, megabytes int) (store journal.Store, id p.ConversationID) {
	b.Helper()
	store = file.New(b.TempDir(), file.Options{})
	e := opened100(b, store)
	defer e.Shutdown(b.Context())
	id, err := e.Create(b.Context(), p.Settings{Cwd: "/w", Model: "puppet"})
	if err != nil {
		b.Fatal(err)
	}
	for range megabytes << 20 / talkSize {
		if _, err := engine.RunTurn(b.Context(), e, id, p.UserTurn{Content: p.Text("go on")}, func(p.Event) {}); err != nil {
			b.Fatal(err)
		}
	}
	return store, id
}

const talkSize = 100 << 10

func opened100(b *testing.B, store journal.Store) *engine.Local {
	text := strings.Repeat("All work and no play makes a dull *program*.\n", talkSize/45)
	return enginetest.Open(b, store, engine.Config{Model: native.Model(talker{text}), Tools: []engine.Tool{native.Tool(talker{text})}})
}

// BenchmarkOpen is the time from the start of the program to the screen that
// shows the end of a conversation of 100 MB.
func BenchmarkOpen(b *testing.B) {
	store, id := long(b, 100)
	for b.Loop() {
		e := opened100(b, store)
		m := newModel(b.Context(), Options{Options: client.Options{Engine: e, Settings: noSettings}, Dir: "/w"})
		until(b, m, m.Open(id), func() bool {
			lines, _ := m.draw(time.Now())
			return m.conv.CaughtUp() && strings.Contains(strings.Join(lines, "\n"), "the end")
		})
		if err := e.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadEarlier is how long the rest of it takes, and what it holds.
func BenchmarkLoadEarlier(b *testing.B) {
	store, id := long(b, 100)
	e := opened100(b, store)
	defer e.Shutdown(b.Context())
	before := heap()
	var m *model
	for b.Loop() {
		m = newModel(b.Context(), Options{Options: client.Options{Engine: e, Settings: noSettings}, Dir: "/w"})
		until(b, m, m.Open(id), func() bool { return m.conv.ID != "" && m.conv.CaughtUp() })
		until(b, m, tea.Batch(m.conv.Feed.Next, m.loadEarlier()), func() bool { return m.conv.From == 0 })
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	runtime.KeepAlive(m)
}

// until runs the program until cond is true.
func until(b *testing.B, m *model, cmd tea.Cmd, cond func() bool) {
	msgs := make(chan tea.Msg, 100)
	run := func(cmd tea.Cmd) {
		if cmd != nil {
			go func() { msgs <- cmd() }()
		}
	}
	run(cmd)
	for !cond() {
		msg := <-msgs
		if list, ok := msg.(tea.BatchMsg); ok {
			for _, cmd := range list {
				run(cmd)
			}
			continue
		}
		_, next := m.Update(msg)
		run(next)
	}
}
