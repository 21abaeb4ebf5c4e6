package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// An import that is interrupted leaves whole conversations, says so by its exit code, and the next one goes on.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	const sessions = 200
	dir := filepath.Join(pl.dir, "codex")
	for i := range sessions {
		id := fmt.Sprintf("0199a0c2-aaaa-7bbb-8ccc-%012d", i)
		name := filepath.Join(dir, "sessions/2026/11/01/rollout-2026-11-01T10-00-00-"+id+".jsonl")
		text := fmt.Sprintf(`{"timestamp":"2026-11-01T10:00:00.000Z","type":"session_meta","payload":{"id":%q,"timestamp":"2026-11-01T10:00:00.000Z","cwd":"/"}}`+"\n"+
			`{"timestamp":"2026-11-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"message %d"}]}}`+"\n", id, i)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := pl.command(t.Context(), "import", "codex", dir, "--all")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil { // it holds the ids of about 110: the rest waits for us
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = in, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	printed := bufio.NewReader(out)
	if _, err := printed.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(printed)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code tells
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	ids := 1 + strings.Count(string(rest), "\n")
	if n := len(pl.conversations()); n != ids || n == sessions {
		t.Errorf("%d conversations are there, %d ids were printed", n, ids)
	}
	pl.must("fsck")
	if again := strings.Count(pl.must("import", "codex", dir, "--all"), "\n"); again != sessions-ids {
		t.Errorf("the next import brought %d of %d", again, sessions-ids)
	}
}
