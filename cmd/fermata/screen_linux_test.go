package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// onScreen runs the binary with stdout and stderr on one terminal, and returns
// what came there.
func (pl *place) onScreen(args ...string) string {
	pl.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		pl.t.Skipf("no terminal can be had here: %v", err)
	}
	defer master.Close()
	pr := &process{t: pl.t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), args...)
	pr.cmd.Stdout, pr.cmd.Stderr = tty, tty
	read := make(chan struct{})
	go func() { // ends when the last process with the terminal has ended
		defer close(read)
		_, _ = io.Copy(&pr.out, master)
	}()
	pr.begin(func() { tty.Close() })
	pr.code()
	<-read
	return pr.out.String()
}

// What a model, a command or the user of another day wrote does not steer the
// terminal on which it is shown later. JSON holds every byte.
func TestOldTextDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "run: printf '\\033]0;owned\\007\\n' # \x1b[2Ktitle")
	id := pl.conversation()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"]0;owned\n", []string{"show", id}},
		{"[2Ktitle", []string{"list"}},
	} {
		if out := pl.onScreen(c.args...); strings.ContainsAny(out, "\x1b\a") || !strings.Contains(out, c.want) {
			t.Errorf("%q: %q", c.args, out)
		}
	}
	if out := pl.must("show", id); strings.ContainsAny(out, "\x1b\a") {
		t.Errorf("in a pipe, which may lead to a terminal: %q", out)
	}
	contains(t, "JSON", pl.must("show", "--json", id), `\u001b]0;owned\u0007\n`)
}

// What a client is asked to approve is shown as it is: nothing in it can hide
// the rest.
func TestApprovalsAreShownWhole(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, errs, code := pl.run("exec", "--demo", "--park", "-a", "untrusted", "run: touch made #\x1b[2K\recho harmless")
	if code != exitWaiting || strings.ContainsAny(errs, "\x1b\r") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	contains(t, "stderr", errs, "  1.1.1: touch made #␛[2K␍echo harmless\n")
}

// To show something that cannot be written is no success.
func TestShowToAFullDisk(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "run: true")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"show", pl.conversation()}, {"show", "--json", pl.conversation()}, {"list"}} {
		cmd := pl.command(t.Context(), args...)
		cmd.Stdout = full
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitFailed {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// On a terminal show draws Markdown, in colour if that is wanted; a pipe and a terminal without
// escape codes get it as it was written. What the text itself holds does not steer any of them.
func TestShowDrawsMarkdown(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "run: true # "+hostile+"**loud** `code`")
	id, own := pl.conversation(), regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for _, c := range []struct {
		name string
		env  []string
		want string
	}{
		{"colour", []string{"TERM=xterm-256color"}, "\x1b[1mloud\x1b[22m \x1b[38;5;180mcode\x1b[39m"},
		{"light", []string{"TERM=xterm-256color", "COLORFGBG=0;15"}, "\x1b[1mloud\x1b[22m \x1b[38;5;94mcode\x1b[39m"},
		{"NO_COLOR", []string{"TERM=xterm-256color", "NO_COLOR=1"}, "\x1b[1mloud\x1b[22m `code`"},
		{"dumb", []string{"TERM=dumb"}, "**loud** `code`"},
	} {
		there := *pl
		there.env = append(pl.env[:len(pl.env):len(pl.env)], c.env...)
		out := there.onScreen("show", id)
		if !strings.Contains(out, c.want) || steers(own.ReplaceAllString(out, "")) {
			t.Errorf("%s: %q, want %q", c.name, out, c.want)
		}
	}
	contains(t, "a pipe", pl.must("show", id), "[demo] I do: run: true # ", "**loud** `code`")
}
