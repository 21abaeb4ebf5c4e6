package tui

import "testing"

// The terminal is taken back once after a stop: by whoever stopped us, if that was
// ourselves.
func TestContinued(t *testing.T) {
	m := &model{o: Options{Suspend: func() error { return nil }}}
	if m.onContinued() == nil {
		t.Error("after a stop by others nothing is done")
	}
	m.suspend()
	if m.onContinued() != nil {
		t.Error("after our own stop the terminal is taken back twice")
	}
	if m.onContinued() == nil {
		t.Error("after our own stop others are not noticed")
	}
}
