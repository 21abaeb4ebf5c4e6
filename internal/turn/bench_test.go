package turn

import (
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

func BenchmarkDecide(b *testing.B) {
	for _, bb := range []struct {
		name  string
		state State
		in    Input
	}{
		{"start", State{}, User{Content: p.Text("go")}},
		{"item", fold(started()...), ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "x"}}},
		{"response_with_3_calls_ends", fold(with(started(), called(0, "work"), called(1, "look"), called(2, "work"))...), ModelDone{Response: 1}},
		{"tool_done", fold(toolRuns()...), ToolDone{Output: p.ToolOutput{Call: id(1, 1, 0)}}},
		{"stop_of_10_calls", fold(answered("work", "work", "work", "work", "work", "work", "work", "work", "work", "work")...), Stop{}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			e := env()
			for b.Loop() {
				if _, err := bb.state.Decide(e, bb.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The fold of a conversation must cost the same for each event, however long
// it is: nothing of a turn that has ended may be kept.
func BenchmarkEvolve(b *testing.B) {
	turn := with(toolRuns(), &p.ToolOutput{Call: id(1, 1, 0)}, &p.ModelRequested{Response: 2}, &p.ModelEnded{Response: 2}, ended(p.Completed))
	for _, turns := range []int{1, 1000} {
		name := map[int]string{1: "first_turn", 1000: "after_1000_turns"}[turns]
		b.Run(name, func(b *testing.B) {
			var s State
			fold := func() {
				for _, body := range turn {
					s = s.Evolve(p.Event{Turn: turnOf(s, body), Time: t0, Body: body})
				}
			}
			for range turns - 1 {
				fold()
			}
			b.ReportAllocs()
			for b.Loop() {
				fold()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(turn)), "ns/event")
		})
	}
}
