package style

import "testing"

// Each line has its colour by itself: a pager forgets it at the end of a line.
func TestPut(t *testing.T) {
	if got, want := Red.Put("a\nb"), "\x1b[31ma\x1b[0m\n\x1b[31mb\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Plain.Put("a\nb"); got != "a\nb" {
		t.Errorf("plain: %q", got)
	}
}
