package main

import (
	"os"
	"path/filepath"
	"syscall"
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

	// A conversation that was left in plan mode is resumed in it, until the plan is accepted.
	s.types("/plan talk 1", "Enter")
	s.sees("Carry out this plan?")
	s.signal(syscall.SIGTERM)
	s.sees("to resume: fermata resume")
	_, errs, code := pl.run("exec", "resume", "--last", "write later: x")
	contains(t, "stderr", errs, "--accept-plan PROMPT")
	if code != 4 {
		t.Errorf("exit code %d in plan mode\n%s", code, errs)
	}
	pl.must("exec", "resume", "--last", "--accept-plan", "write later: x")
	if _, err := os.Stat(filepath.Join(pl.work, "later")); err != nil {
		t.Error(err)
	}
}
