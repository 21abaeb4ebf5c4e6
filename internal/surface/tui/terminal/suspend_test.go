package terminal

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

// The terminal is taken back once after a stop, whether this process or another one stopped it.
func TestContinued(t *testing.T) {
	s := Suspender{Stop: func() error { return nil }}
	then := func(error) tea.Cmd { return nil }
	if s.Continued(then) == nil {
		t.Error("after a stop by another process nothing is done")
	}
	s.Suspend(then)
	if s.Continued(then) != nil {
		t.Error("after our own stop the terminal is taken back twice")
	}
	if s.Continued(then) == nil {
		t.Error("after our own stop that of another process is not noticed")
	}
}
