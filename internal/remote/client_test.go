package remote_test

import (
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// An op whose answer was lost is submitted again to the next owner, and done once. Its
// events say who asked.
func TestOpIsDoneOnce(t *testing.T) {
	home := t.TempDir()
	a, b := newNode(t, home), newNode(t, home)
	id := create(t, a.c)
	ctx := engine.WithClient(t.Context(), engine.Client{Name: "me", Op: "first"})
	first, err := b.c.Submit(ctx, id, p.UserTurn{Content: p.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	a.Request()
	ctx2 := engine.WithClient(t.Context(), engine.Client{Op: "second"})
	steered, err := b.c.Submit(ctx2, id, p.UserTurn{Content: p.Text("more")})
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.c.Submit(ctx2, id, p.UserTurn{Content: p.Text("more")})
	if err != nil || again != steered || steered.State != p.TakenSteered {
		t.Errorf("at once: %+v, %v; want %+v", again, err, steered)
	}
	a.die()
	again, err = b.c.Submit(ctx, id, p.UserTurn{Content: p.Text("hello")})
	if err != nil || again != first || first.State != p.TakenStarted {
		t.Errorf("after a crash: %+v, %v; want %+v", again, err, first)
	}
	var messages []string
	for ev, err := range b.Read(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := ev.Body.(*p.UserMessage); ok {
			messages = append(messages, m.Client+": "+p.PlainText(m.Content))
		}
		if m, ok := ev.Body.(*p.InputAccepted); ok {
			messages = append(messages, m.Client+" waits: "+p.PlainText(m.Content))
		}
	}
	if len(messages) != 2 || messages[0] != "me: hello" || messages[1] != "test waits: more" {
		t.Errorf("recorded are %q", messages)
	}
}
