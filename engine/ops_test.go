package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/engine/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A message that is refused changes no settings.
func TestRefusedMessageChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		before, err := e.Resume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		model := "other"
		ctx := engine.WithClient(t.Context(), engine.Client{Name: "test", Op: "op-1"})
		ut := p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Steer, Overrides: &p.Overrides{Model: &model}}
		_, err = e.Submit(ctx, id, ut)
		after, _ := e.Resume(t.Context(), id)
		if err == nil || after.Settings.Model != before.Settings.Model || after.Last != before.Last {
			t.Errorf("refused with %v: the model is %q, was %q; the last event is %d, was %d", err, after.Settings.Model, before.Settings.Model, after.Last, before.Last)
		}
		if r, err := e.Submit(ctx, id, ut); err == nil {
			t.Errorf("the same op again is accepted: %+v", r)
		}
	})
}
