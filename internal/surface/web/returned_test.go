package web

import (
	"fmt"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// A message that was not delivered is on the page, also after later turns, until it is sent or dropped there.
func TestReturnedMessagesOnThePage(t *testing.T) {
	r := newRig(t)
	id := r.begin("wait")
	a := newScreen()
	stream := r.view(id, a)
	a.until(t, stream, func() bool { return a.state != nil && a.state.Phase == "working" })
	one := r.op(id, p.UserTurn{Content: p.Text("<b>one</b>"), WhenBusy: p.Queue}).Input
	two := r.op(id, p.UserTurn{Content: p.Text("two"), WhenBusy: p.Queue}).Input
	r.op(id, p.Interrupt{})
	a.until(t, stream, func() bool { return a.state.Phase == "ready" })
	r.op(id, p.UserTurn{Content: p.Text("hello")})
	a.until(t, stream, func() bool { return a.state.Phase == "ready" && a.state.Turn == 2 })
	dock := a.state.Dock.Returned
	for _, want := range []string{"&lt;b&gt;one", ">two<", "send-returned", "edit-returned", "drop-returned"} {
		if !strings.Contains(dock, want) {
			t.Errorf("no %s in %s", want, dock)
		}
	}
	if got := a.state.Returned[int(one)]; got != "<b>one</b>" {
		t.Errorf("to be edited: %q", got)
	}

	r.op(id, p.ResolveReturned{Inputs: []p.InputID{one}, As: p.ResolvedDropped})
	again := fmt.Sprintf(`{"kind":"resolve_returned","body":{"inputs":[%d],"as":"taken"}}`, one)
	if code, body, _ := r.do("POST", "/api/v1/conversations/"+string(id)+"/ops", again, nil); code != 409 || !strings.Contains(body, "not_returned") {
		t.Errorf("taken after it was dropped: %d %s", code, body)
	}
	r.op(id, p.UserTurn{Returned: []p.InputID{two}, WhenBusy: p.Queue})
	a.until(t, stream, func() bool { return a.state.Phase == "ready" && a.state.Turn == 3 })
	if a.state.Dock.Returned != "" || !strings.Contains(strings.Join(a.text(), ""), "two") {
		t.Errorf("returned: %q; on the screen: %q", a.state.Dock.Returned, a.text())
	}
}
