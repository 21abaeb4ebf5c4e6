package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whoever removes the lock file of a conversation in which a turn runs does not
// get a second writer, and fsck finds nothing wrong with it.
func TestLockFileIsRemovedDuringATurn(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	cmd := pl.command(t.Context(), "exec", "--demo", "run: echo begun; exec sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	id := pl.conversation()
	pl.awaitText(id, "begun")
	locks, err := filepath.Glob(filepath.Join(pl.dir, "home/fermata/conversations/*/*/*/*.lock"))
	if len(locks) != 1 || err != nil {
		t.Fatalf("lock files are %v, %v", locks, err)
	}
	pl.fsck(id)
	if err := os.Remove(locks[0]); err != nil {
		t.Fatal(err)
	}
	pl.fsck(id)
	_, errs, code := pl.run("exec", "resume", id, "what happened?")
	if code != 1 || !strings.Contains(errs, "has this conversation open") {
		t.Errorf("resume: exit code %d\n%s", code, errs)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	contains(t, "what the model was told", pl.sound(id), "begun")
}

// A conversation whose file is replaced while a turn runs: the turn ends and says
// so, and nothing is lost.
func TestFileIsReplacedDuringATurn(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	var errs strings.Builder
	cmd := pl.command(t.Context(), "exec", "--demo", "run: echo begun; cat fifo; echo over")
	if err := syscall.Mkfifo(filepath.Join(pl.work, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	id := pl.conversation()
	pl.awaitText(id, "begun")
	files, err := filepath.Glob(filepath.Join(pl.dir, "home/fermata/conversations/*/*/*/*.jsonl"))
	if len(files) != 1 || err != nil {
		t.Fatalf("files are %v, %v", files, err)
	}
	if err := os.Rename(files[0], files[0]+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pl.work, "fifo"), nil, 0); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if !strings.Contains(errs.String(), "another program has moved or removed "+files[0]) {
		t.Errorf("it says:\n%s", errs.String())
	}
	out := pl.must("show", id)
	contains(t, "show", out, "begun")
	pl.must("fsck", id, "--repair")
	contains(t, "what the model was told", pl.sound(id), "begun")
}
