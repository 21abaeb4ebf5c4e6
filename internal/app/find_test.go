package app

import (
	"context"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A countingStore counts how often all conversations are looked at.
type countingStore struct {
	journal.Store
	lists int
}

func (c *countingStore) List(ctx context.Context) ([]journal.Info, error) {
	c.lists++
	return c.Store.List(ctx)
}

// With many conversations, one that is named in full is found at once, and another
// one by looking at all of them once.
func TestFindingOneOfManyConversations(t *testing.T) {
	store := &countingStore{Store: journal.NewMemoryStore(journal.MemoryOptions{})}
	e := enginetest.Open(t, store, engine.Config{})
	var first p.ConversationID
	for range 60 {
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = id
		}
	}
	for _, c := range []struct {
		name  string
		id    p.ConversationID
		lists int
	}{
		{string(first), first, 0},
		{string(first[:35]), first, 1},
		{"01a1e000-0000-7000-8000-000000000000", "", 1},
	} {
		store.lists = 0
		id, err := Find(t.Context(), e, c.name)
		if id != c.id || (err == nil) != (c.id != "") || store.lists != c.lists {
			t.Errorf("%s: %s, %v, looked at all %d times, want %d", c.name, id, err, store.lists, c.lists)
		}
	}
	store.lists = 0
	n := 0
	for range All(t.Context(), e, engine.ListOptions{}) {
		n++
	}
	if n != 60 || store.lists != 1 {
		t.Errorf("%d conversations, looked at %d times", n, store.lists)
	}
}

// A conversation is suggested only if its id or title is like the name that was given.
func TestNearestConversations(t *testing.T) {
	list := []engine.Summary{{ID: "01a1df48-95b6-7000-8000-000000000000", Title: "Fix the parser"}, {ID: "02b2e000-0000-7000-8000-000000000000", Title: "Write docs"}}
	for name, want := range map[string]string{
		"Fix the pasrer": "did you mean:\n  01a1df48-95b6-7000-8000-000000000000  Fix the parser",
		"01a1df4b":       "did you mean:\n  01a1df48-95b6-7000-8000-000000000000  Fix the parser",
		"something else": "see fermata list",
		"x":              "see fermata list",
	} {
		if got := nearest(name, list); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := nearest("x", nil); got != "there are no conversations yet" {
		t.Errorf("of none: %q", got)
	}
}
