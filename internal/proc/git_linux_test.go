package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStoppedCommitLeavesNoLock is why SIGTERM comes first: git removes its lock
// then, and cannot when it is killed.
func TestStoppedCommitLeavesNoLock(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	s := newSpawner(t)
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	r, out := runSpec(t, s, Spec{Dir: dir, Argv: []string{"sh", "-ec", `
		git init -q . && git config user.email a@example.com && git config user.name a
		echo 1 > f && git add f && git commit -qm one && echo 2 > f
		printf '#!/bin/sh\nsleep 100 &\ntouch ready\nwait\n' > .git/hooks/pre-commit
		chmod +x .git/hooks/pre-commit`}})
	if r.ExitCode != 0 || r.Err != nil {
		t.Fatalf("result %+v, output %q", r, out.Text())
	}

	c, err := s.Start(t.Context(), Spec{
		Dir: dir, Argv: []string{"git", "commit", "-qam", "two"},
		Grace: 20 * time.Second, Bound: 30 * time.Second, // a slow machine must not fail this
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "the hook runs", func() bool { return exists(ready) })
	lock := filepath.Join(dir, ".git", "index.lock")
	if !exists(lock) {
		t.Fatal("git holds no lock, so this proves nothing")
	}
	c.Stop(errors.New("enough"))
	if r := c.Wait(); !r.Stopped || r.Err != nil || r.Killed < 3 {
		t.Errorf("result %+v, want git, hook and sleep stopped", r)
	}
	if exists(lock) {
		t.Error("index.lock is left")
	}
	if err := os.Remove(filepath.Join(dir, ".git", "hooks", "pre-commit")); err != nil {
		t.Fatal(err)
	}
	if r, out := runSpec(t, s, Spec{Dir: dir, Argv: []string{"git", "commit", "-qam", "two"}}); r.ExitCode != 0 {
		t.Errorf("the next commit: result %+v, output %q", r, out.Text())
	}
}
