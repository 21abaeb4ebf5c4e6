package tui

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
