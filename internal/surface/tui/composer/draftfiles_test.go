package composer

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func draftOf(t *testing.T, d *DraftFiles, id string) string {
	t.Helper()
	text, err := d.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDraftsOfConversations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	d := NewDraftFiles(dir, "/w")
	if got := draftOf(t, d, "c1"); got != "" {
		t.Errorf("before anything was saved: %q", got)
	}
	for id, text := range map[string]string{"c1": "one\ntwo", "c2": "other"} {
		if err := d.Save(id, text); err != nil {
			t.Fatal(err)
		}
	}
	end(d)
	later := NewDraftFiles(dir, "/elsewhere")
	if got := draftOf(t, later, "c1"); got != "one\ntwo" {
		t.Errorf("draft of c1: %q", got)
	}
	if got := draftOf(t, later, "c1"); got != "one\ntwo" {
		t.Errorf("it is ours now, but gives %q", got)
	}
	if err := later.Save("c1", ""); err != nil {
		t.Fatal(err)
	}
	if got := draftOf(t, later, "c1"); got != "" {
		t.Errorf("after it was sent: %q", got)
	}
	if err := later.Save("c1", ""); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
	if got := draftOf(t, later, "c2"); got != "other" {
		t.Errorf("draft of c2: %q", got)
	}
}

// end is what the end of a process does to its drafts.
func end(d *DraftFiles) {
	for path := range d.held {
		d.keep(path, nil)
	}
}

// Each of two windows that show one conversation keeps its own draft: neither takes
// that of the other while it lives, replaces it, or removes it; each is there when they are gone.
func TestTwoWindowsHaveTwoDrafts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	one, two := NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/w")
	for i, text := range []string{"a", "ab", "abc"} { // each replaces the file
		if err := one.Save("c", text); err != nil {
			t.Fatal(err)
		}
		if got := draftOf(t, two, "c"); got != "" {
			t.Errorf("save %d: the other window has %q", i, got)
		}
	}
	for _, text := range []string{"x", "", "xy"} {
		if err := two.Save("c", text); err != nil {
			t.Fatal(err)
		}
	}
	end(one)
	end(two)
	later := []*DraftFiles{NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/w")}
	var got []string
	for _, d := range later {
		got = append(got, draftOf(t, d, "c"))
	}
	slices.Sort(got)
	if want := []string{"", "abc", "xy"}; !slices.Equal(got, want) {
		t.Errorf("the next three windows have %q, want %q", got, want)
	}
	for _, d := range later {
		end(d)
	}
}

// A draft that its process replaces while another one looks at it is not taken.
func TestDraftIsReplacedWhileItIsTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	writer, reader := NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/w")
	if err := writer.Save("c", "0"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			if err := writer.Save("c", strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if got := draftOf(t, reader, "c"); got != "" {
			t.Fatalf("the draft of a window that lives was taken: %q", got)
		}
	}
	if got := draftOf(t, writer, "c"); got != "499" {
		t.Errorf("the window has %q", got)
	}
}

// A draft of a conversation that has not begun is taken over by the next process in
// that directory, once, and not while its own process runs.
func TestDraftIsInherited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drafts")
	gone, running, elsewhere := NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/w"), NewDraftFiles(dir, "/v")
	for d, text := range map[*DraftFiles]string{gone: "from the dead", running: "still written", elsewhere: "another directory"} {
		if err := d.Save("", text); err != nil {
			t.Fatal(err)
		}
	}
	end(gone)
	end(elsewhere)
	d := NewDraftFiles(dir, "/w")
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
	end(running)
}
