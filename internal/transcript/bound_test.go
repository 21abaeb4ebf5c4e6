package transcript

import (
	"fmt"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// A command that prints without end costs memory within bounds; its last lines
// are there, and what is missing is counted.
func TestOpenOutputIsBounded(t *testing.T) {
	for name, line := range map[string]func(int) string{
		"lines":      func(i int) string { return fmt.Sprintf("line %d of many\n", i) },
		"no lines":   func(i int) string { return strings.Repeat("x", 50) },
		"big pieces": func(i int) string { return strings.Repeat("y\n", 100_000) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := fold(started()...)
			offset := int64(0)
			last := ""
			for i := 0; offset < 10*openOutput; i++ {
				last = line(i)
				tr.Apply(p.Event{Turn: 1, Body: &p.Delta{Item: call, Kind: p.DeltaStdout, Offset: offset, Text: last}})
				offset += int64(len(last))
			}
			it := tr.Items[len(tr.Items)-1]
			if n := len(it.Output); n > 3*openOutput || n < openOutput/2 {
				t.Errorf("%d bytes are kept", n)
			}
			if it.Omitted+int64(len(it.Output)) != offset || !strings.HasSuffix(it.Output, last) {
				t.Errorf("%d are left out and %d there of %d", it.Omitted, len(it.Output), offset)
			}
			if name == "lines" && !strings.HasPrefix(it.Output, "line ") {
				t.Errorf("it begins with %q", it.Output[:20])
			}
			tr.Apply(p.Event{Seq: 99, Turn: 1, Body: &p.ToolOutput{Call: call, Command: &p.CommandResult{Output: "head and tail", Omitted: 7}}})
			if it.Output != "head and tail" || it.Omitted != 7 {
				t.Errorf("the result is %q without %d", it.Output, it.Omitted)
			}
		})
	}
}

// What a model says is kept whole.
func TestOpenTextIsWhole(t *testing.T) {
	tr := fold(&p.TurnStarted{})
	text := strings.Repeat("word ", openOutput)
	tr.Apply(p.Event{Turn: 1, Body: &p.Delta{Item: message, Kind: p.DeltaMessage, Text: text}})
	if it := tr.Items[0]; it.Text != text || it.Omitted != 0 {
		t.Errorf("%d of %d bytes are there", len(it.Text), len(text))
	}
}
