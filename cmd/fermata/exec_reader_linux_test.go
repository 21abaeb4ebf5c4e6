package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
)

// A reader of lines that leaves while a command runs and prints nothing: there is
// no write that would tell, and the turn is stopped all the same.
func TestReaderOfLinesLeavesInSilence(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), "exec", "--demo", "--json", "run: touch running; sleep 600")
	pr.cmd.Stdout, pr.cmd.Stderr = w, &pr.err
	pr.begin(func() {})
	w.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() && !strings.Contains(lines.Text(), `"item.started"`) {
	}
	eventually(t, "the command runs", func() bool { _, err := os.Stat(pl.work + "/running"); return err == nil })
	tree := below(pr.cmd.Process.Pid)
	r.Close()
	if code := pr.code(); code != exitUnread {
		t.Errorf("exit code %d, want %d", code, exitUnread)
	}
	pl.noneLeft(t, tree)
	id := pl.conversation()
	if want := "fermata: interrupted: stdout was closed\nhint: resume with: fermata exec resume " + id + " PROMPT\n"; pr.err.String() != want {
		t.Errorf("stderr %q, want %q", pr.err.String(), want)
	}
	contains(t, "what the model was told", pl.sound(id), "Interrupted: `touch running; sleep 600`")
}

// The same for a client that looks at a conversation in which nothing happens.
func TestReaderOfATailLeavesInSilence(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "run: true")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), "show", "--follow", "--json", pl.conversation())
	pr.cmd.Stdout, pr.cmd.Stderr = w, &pr.err
	pr.begin(func() {})
	w.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() && !strings.Contains(lines.Text(), `"turn_ended"`) {
	}
	r.Close()
	if code := pr.code(); code != exitUnread || pr.err.String() != "" {
		t.Errorf("exit code %d, want %d, stderr %q", code, exitUnread, pr.err.String())
	}
}
