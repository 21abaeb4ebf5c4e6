package tui

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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

// What stops the drawing has its time to do so before anything else is done.
func TestDrawingHasStoppedBeforeTheTerminalIsGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		began := time.Now()
		var waited time.Duration
		err := away{pause{func() error { waited = time.Since(began); return failed }}}.Run()
		if waited != settle || !errors.Is(err, failed) {
			t.Errorf("waited %v, want %v; error %v", waited, settle, err)
		}
	})
}
