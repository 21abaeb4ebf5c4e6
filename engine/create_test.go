package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A process that was killed while it created or forked a conversation leaves a part of it. A request with the same id
// makes it whole, and another one changes nothing.
func TestCreateAndForkWithAnID(t *testing.T) {
	for name, create := range map[string]func(t *testing.T, e *enginetest.Engine, id p.ConversationID) (p.ConversationID, error){
		"create": func(t *testing.T, e *enginetest.Engine, id p.ConversationID) (p.ConversationID, error) {
			return e.Create(engine.WithNewID(t.Context(), id), p.Settings{Model: "mine"})
		},
		"fork": func(t *testing.T, e *enginetest.Engine, id p.ConversationID) (p.ConversationID, error) {
			original := e.Begin()
			model := "mine"
			e.Must(original, p.Configure{Overrides: p.Overrides{Model: &model}})
			return e.Fork(engine.WithNewID(t.Context(), id), original, 0)
		},
	} {
		for left, entries := range map[string][]journal.Entry{
			"nothing": nil, "no record": {}, "a record": {{Kind: "conversation_started", Body: []byte(`{"id":"x"}`)}},
		} {
			if name == "create" && len(entries) > 0 {
				continue // that is all of it
			}
			t.Run(name+"/"+left, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := enginetest.New(t, enginetest.Options{})
					id := p.NewConversationID(time.Now())
					if entries != nil {
						j, err := e.Store.Create(t.Context(), string(id), id.Time())
						if err != nil {
							t.Fatal(err)
						}
						j.Append(entries...)
						if err := j.Close(); err != nil {
							t.Fatal(err)
						}
					}
					got, err := create(t, e, id)
					if err != nil || got != id {
						t.Fatalf("created %q, %v", got, err)
					}
					if snap, err := e.Resume(t.Context(), id); err != nil || snap.Settings.Model != "mine" {
						t.Errorf("it is %+v, %v", snap, err)
					}

					e.Must(id, p.Rename{Title: "in use"})
					if err := e.Release(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					if got, err = create(t, e, id); err != nil || got != id {
						t.Errorf("created again %q, %v", got, err)
					}
					if snap, err := e.Resume(t.Context(), id); err != nil || snap.Title != "in use" {
						t.Errorf("after that it is %+v, %v", snap, err)
					}
				})
			})
		}
	}
	e := enginetest.New(t, enginetest.Options{})
	if id, err := e.Create(engine.WithNewID(t.Context(), "../x"), p.Settings{}); err == nil {
		t.Errorf("created %q", id)
	}
}
