package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func draftOf(t *testing.T, d *Drafts, id string) string {
	t.Helper()
	text, err := d.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDraftsOfConversations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	d := NewDrafts(dir, "/w")
	if got := draftOf(t, d, "c1"); got != "" {
		t.Errorf("before anything was saved: %q", got)
	}
	for id, text := range map[string]string{"c1": "one\ntwo", "c2": "other"} {
		if err := d.Save(id, text); err != nil {
			t.Fatal(err)
		}
	}
	later := NewDrafts(dir, "/elsewhere")
	if got := draftOf(t, later, "c1"); got != "one\ntwo" {
		t.Errorf("draft of c1: %q", got)
	}
	if err := d.Save("c1", ""); err != nil {
		t.Fatal(err)
	}
	if got := draftOf(t, later, "c1"); got != "" {
		t.Errorf("after it was sent: %q", got)
	}
	if err := d.Save("c1", ""); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
	if got := draftOf(t, d, "c2"); got != "other" {
		t.Errorf("draft of c2: %q", got)
	}
}

// A draft of a conversation that has not begun is taken over by the next process in
// that directory, once, and not while its own process runs.
func TestDraftIsInherited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	gone := NewDrafts(dir, "/w")
	gone.pid = ended.Process.Pid
	running := NewDrafts(dir, "/w")
	running.pid = os.Getppid()
	elsewhere := NewDrafts(dir, "/v")
	elsewhere.pid = ended.Process.Pid
	for d, text := range map[*Drafts]string{gone: "from the dead", running: "still written", elsewhere: "another directory"} {
		if err := d.Save("", text); err != nil {
			t.Fatal(err)
		}
	}
	d := NewDrafts(dir, "/w")
	if got := draftOf(t, d, ""); got != "from the dead" {
		t.Errorf("inherited %q", got)
	}
	if got := draftOf(t, d, ""); got != "from the dead" {
		t.Errorf("it is ours now, but gives %q", got)
	}
	if err := d.Save("", ""); err != nil {
		t.Fatal(err)
	}
	if got := draftOf(t, d, ""); got != "" {
		t.Errorf("the draft of a process that runs was taken: %q", got)
	}
}
