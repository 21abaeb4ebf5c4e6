package exec

import (
	"strings"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// Commands that run side by side are shown one after the other. A question is shown at once, and what was shown
// before it begins again with its command line.
func TestCallsSideBySideAreShownApart(t *testing.T) {
	id := func(n int) p.CallID { return p.CallID{Turn: 1, Response: 1, Index: n} }
	var out strings.Builder
	pr := newPrinter(Options{Output: Output{Err: &out}})
	event := func(b p.Body) {
		pr.Event(p.Event{Turn: 1, Time: time.Unix(100, 0), Body: b})
	}
	printed := map[int]int64{}
	prints := func(n int, text string) {
		event(&p.Delta{Item: id(n), Kind: p.DeltaStdout, Offset: printed[n], Text: text})
		printed[n] += int64(len(text))
	}
	ends := func(n int, text string) {
		event(&p.ToolOutput{Call: id(n), Output: text, Command: &p.CommandResult{Output: text, Elapsed: time.Second}, Elapsed: time.Second})
	}
	event(&p.TurnStarted{})
	names := []string{"one", "two", "three", "four"}
	for i, name := range names {
		event(&p.ToolCall{Call: id(i), WireID: name, Name: "exec_command", Arguments: `{"cmd":"` + name + `"}`})
	}
	event(&p.ModelEnded{Response: 1})
	for i, name := range names {
		event(&p.CallStarted{Call: id(i), Lane: "beside"})
		if i < 3 {
			event(&p.CommandStarted{Call: id(i), Command: []string{name}})
		}
	}
	prints(1, "b1\n")
	prints(0, "a1\n")
	prints(1, "b2\n")
	event(&p.ApprovalRequested{Call: id(3), Kind: p.ApproveCommand, Command: []string{"four"}, Reason: "why not"})
	prints(0, "a2\n")
	ends(1, "b1\nb2\n")
	prints(2, "c1\n")
	ends(0, "a1\na2\n")
	prints(2, "c2\n")
	ends(2, "c1\nc2\n")
	event(&p.ApprovalResolved{Call: id(3), Decision: p.Approved})
	event(&p.CallStarted{Call: id(3), Grant: p.Approved})
	event(&p.CommandStarted{Call: id(3), Command: []string{"four"}})
	prints(3, "d1\n")
	ends(3, "d1\n")
	const want = `$ one
  a1
$ four
? waiting for approval: why not
$ one
  a2
  (ok, 1.0 s)
$ two
  b1
  b2
  (ok, 1.0 s)
$ three
  c1
  c2
  (ok, 1.0 s)
$ four
  d1
  (ok, 1.0 s)
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
