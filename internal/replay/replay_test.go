package replay

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A subscriber that is late gets the rest of an output when the command has ended, each part of it as the
// stream that it came from.
func TestRestOfAnOutput(t *testing.T) {
	type part struct {
		Kind   p.DeltaKind
		Offset int64
		Text   string
	}
	result := p.CommandResult{Output: "out, err, out", Stderr: [][2]int{{5, 10}}}
	rests := map[string][]part{
		"":           nil, // who was given nothing gets the output with the record alone
		"o":          {{"stdout", 1, "ut, "}, {"stderr", 5, "err, "}, {"stdout", 10, "out"}},
		"out, er":    {{"stderr", 7, "r, "}, {"stdout", 10, "out"}},
		"out, err, ": {{"stdout", 10, "out"}},
	}
	call := p.CallID{Turn: 1, Response: 1, Index: 1}
	for kind, ended := range map[string]struct {
		item p.ItemID
		body p.Body
	}{
		"tool_output":      {call, &p.ToolOutput{Call: call, Command: &result}},
		"background_ended": {p.BackgroundID(1).Item(), &p.BackgroundEnded{ID: 1, Result: result}},
	} {
		raw, err := json.Marshal(ended.body)
		if err != nil {
			t.Fatal(err)
		}
		for seen, want := range rests {
			var got []part
			g := New(func(e p.Event, err error) bool {
				if d, ok := e.Body.(*p.Delta); ok {
					got = append(got, part{d.Kind, d.Offset, d.Text})
				}
				return true
			})
			if seen != "" {
				g.Add(nil, []journal.Chunk{{Item: ended.item.String(), Tag: "stdout", Text: seen}})
				got = nil
			}
			g.Add([]journal.Record{{Seq: 1, Turn: 1, Kind: kind, Body: raw}}, nil)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s after %q (-want +got):\n%s", kind, seen, d)
			}
		}
	}
}
