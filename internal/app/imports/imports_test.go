package imports_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

func importer(t *testing.T) (*imports.Importer, string) {
	home := t.TempDir()
	return &imports.Importer{Store: file.New(home, file.Options{}), Version: "test", Settings: func(cwd string) p.Settings { return p.Settings{Cwd: cwd} }}, home
}

func session(texts ...string) foreign.Conversation {
	c := foreign.Conversation{Session: foreign.Session{
		Agent: foreign.Codex, ID: "s1", Cwd: "/work", Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Modified: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
	}}
	for _, text := range texts {
		c.Steps = append(c.Steps, foreign.Step{Kind: foreign.User, Text: text}, foreign.Step{Kind: foreign.Message, Text: "answer to " + text})
	}
	return c
}

func must(t *testing.T, im *imports.Importer, c foreign.Conversation, want imports.State) imports.Result {
	t.Helper()
	would, err := im.Compare(t.Context(), c, "")
	if err != nil || would.State != want {
		t.Fatalf("before: %+v, %v; want %s", would, err, want)
	}
	r, err := im.Import(t.Context(), c, "", nil)
	if err != nil || r.State != want || r.ID != would.ID {
		t.Fatalf("%+v, %v; want %s, %s", r, err, want, would.ID)
	}
	return r
}

// records are the kinds of the records of a conversation.
func records(t *testing.T, im *imports.Importer, id p.ConversationID) string {
	t.Helper()
	v, err := im.Store.View(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	recs, err := v.Read(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range recs {
		list = append(list, r.Kind)
	}
	return strings.Join(list, " ")
}

// Importing again adds what is new, doubles nothing, and leaves alone what was continued here.
func TestImportAgain(t *testing.T) {
	im, _ := importer(t)
	first := must(t, im, session("one"), imports.New)
	was := records(t, im, first.ID)
	must(t, im, session("one"), imports.Same)
	if now := records(t, im, first.ID); now != was {
		t.Errorf("importing again changed it:\n%s\n%s", was, now)
	}
	grown := must(t, im, session("one", "two"), imports.Grown)
	if grown.ID != first.ID || grown.Turns != 2 {
		t.Errorf("grown: %+v", grown)
	}

	j, err := im.Store.Open(t.Context(), string(first.ID))
	if err != nil {
		t.Fatal(err)
	}
	j.Append(journal.Entry{Kind: "renamed", Body: []byte(`{"title":"mine"}`)})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, im, session("one", "two"), imports.Same)
	beside := must(t, im, session("one", "two", "three"), imports.Continued)
	if beside.ID == first.ID || beside.Turns != 3 || !strings.HasSuffix(records(t, im, first.ID), "renamed") {
		t.Errorf("beside: %+v; the first has %s", beside, records(t, im, first.ID))
	}
	must(t, im, session("one", "two", "three"), imports.Same)
}

// A conversation is as old as the session was, and one that was archived there is archived here.
func TestImportedTimes(t *testing.T) {
	im, home := importer(t)
	c := session("one")
	c.Archived = true
	r := must(t, im, c, imports.New)
	info, err := im.Store.Stat(t.Context(), string(r.ID))
	if err != nil || !info.Archived || !info.Modified.Equal(c.Modified) {
		t.Errorf("%+v, %v", info, err)
	}
	if rel, _ := filepath.Rel(home, info.Path); !strings.HasPrefix(rel, filepath.Join("archived", "2026", "03", "01")) {
		t.Errorf("it is in %s", rel)
	}
}

// An import that was killed between creating the journal and writing it leaves nothing to be afraid of.
func TestImportAfterKill(t *testing.T) {
	im, _ := importer(t)
	c := session("one")
	id := convert.ConversationID(c.Session, "")
	j, err := im.Store.Create(t.Context(), string(id), id.Time())
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	must(t, im, c, imports.New)
	must(t, im, c, imports.Same)
}
