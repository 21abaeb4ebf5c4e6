package convert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	p "github.com/fermata-agent/fermata/protocol"
)

// What is written for Codex is read back as the same conversation.
func TestRolloutAndBack(t *testing.T) {
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	steps := []foreign.Step{
		{Kind: foreign.User, Text: "run it"},
		{Kind: foreign.Message, Text: "Running."},
		{Kind: foreign.Call, ID: "a", Name: "shell", Input: `{"command":["ls"]}`},
		{Kind: foreign.Call, ID: "b", Name: "apply_patch", Input: "*** Begin Patch", Custom: true},
		{Kind: foreign.Output, ID: "a", Text: "one"},
		{Kind: foreign.Output, ID: "b", Text: "two", Images: []string{"data:image/png;base64,AA=="}},
		{Kind: foreign.Message, Text: "Done."},
		{Kind: foreign.Completed},
		{Kind: foreign.User, Text: "again"},
		{Kind: foreign.Compaction, Text: "the summary"},
		{Kind: foreign.Message, Text: "half", Partial: true},
		{Kind: foreign.Interrupted},
	}
	id := p.NewConversationID(at)
	c := foreign.Conversation{Session: foreign.Session{Agent: foreign.Codex, ID: "s", Cwd: "/work", Started: at}, Steps: steps}
	var r convert.Rollout
	for _, e := range convert.Events(c, p.ConversationStarted{ID: id, Settings: p.Settings{Cwd: "/work", Model: "m"}}, nil) {
		r.Add(e)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.FromSlash(convert.RolloutName(id)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}

	h := &foreign.Home{Agent: foreign.Codex, Dir: dir}
	list, err := h.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != string(id) || list[0].Title != "run it" || list[0].Model != "m" {
		t.Fatalf("%+v, %v", list, err)
	}
	back, err := h.Read(t.Context(), list[0])
	if err != nil || len(back.Losses) > 0 {
		t.Fatalf("losses %v, %v", back.Losses, err)
	}
	if got, want := plain(back.Steps), plain(steps); !reflect.DeepEqual(got, want) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, want)
	}
}

// plain are steps without what a rollout gives other names, or does not have.
func plain(steps []foreign.Step) (list []foreign.Step) {
	for _, s := range steps {
		list = append(list, foreign.Step{Kind: s.Kind, Text: s.Text, Images: s.Images, Name: s.Name, Input: s.Input, Custom: s.Custom})
	}
	return list
}

// What was reverted is not written: Codex would send it.
func TestRolloutWithoutReverted(t *testing.T) {
	var r convert.Rollout
	id := p.NewConversationID(time.Now())
	for _, e := range []p.Event{
		{Seq: 1, Body: &p.ConversationStarted{ID: id}},
		{Seq: 2, Turn: 1, Body: &p.TurnStarted{}},
		{Seq: 3, Turn: 1, Body: &p.UserMessage{Content: p.Text("stays")}},
		{Seq: 4, Turn: 2, Body: &p.TurnStarted{}},
		{Seq: 5, Turn: 2, Body: &p.UserMessage{Content: p.Text("goes")}},
		{Seq: 6, Body: &p.Reverted{Before: 2}},
	} {
		r.Add(e)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b.Bytes(), []byte("stays")) || bytes.Contains(b.Bytes(), []byte("goes")) {
		t.Error(b.String())
	}
}
