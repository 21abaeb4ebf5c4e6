package main

import (
	"os"
	"path/filepath"
	"testing"
)

// In plan mode the sandbox lets nothing be written; when the plan is accepted, it is as before.
func TestScreenPlan(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo())
	s.sees("ready")
	made := filepath.Join(pl.work, "made")
	s.types("/plan run: touch made", "Enter")
	s.sees("Carry out this plan?", "the plan waits for your answer", "plan mode: read-only")
	if _, err := os.Stat(made); err == nil {
		t.Error("the file was made in plan mode")
	}
	s.answer("y")
	s.gone("plan mode: read-only")
	s.sees("ready")
	s.types("run: touch made", "Enter")
	eventually(t, "the file is made when the plan was accepted", func() bool {
		_, err := os.Stat(made)
		return err == nil
	})
	s.sees("ready")
}
