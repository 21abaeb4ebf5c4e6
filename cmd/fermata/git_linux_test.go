package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A commit that is cut takes its lock with it: the next one works.
func TestInterruptedCommitLeavesNoLock(t *testing.T) {
	t.Parallel()
	needsGit(t)
	for name, sig := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pl.repository()
			lock := filepath.Join(pl.work, ".git", "index.lock")
			pl.git("add", "file")
			pl.file("file", "changed\n")
			pr := pl.start("exec", "--demo", "-s", "danger-full-access", "run: git commit -a -m slow")
			id := pl.conversation()
			eventually(t, "the hook runs", func() bool { return exists(filepath.Join(pl.work, "hook-runs")) })
			if !exists(lock) {
				t.Fatal("git holds no lock, so this proves nothing")
			}
			tree := below(pr.cmd.Process.Pid)
			pr.signal(sig)
			pr.code()
			pl.noneLeft(t, tree)
			if exists(lock) {
				t.Error("the lock is still there")
			}
			pl.git("commit", "--no-verify", "-a", "-m", "quick")
			pl.sound(id)
		})
	}
}

// repository makes the working directory a repository whose commits take long.
func (pl *place) repository() {
	pl.env = append(pl.env,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	pl.git("init", "-q")
	pl.file("file", "first\n")
	pl.file(".git/hooks/pre-commit", "#!/bin/sh\ntouch hook-runs\nsleep 600\n")
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
