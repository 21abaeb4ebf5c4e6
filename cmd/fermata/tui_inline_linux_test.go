package main

import (
	"strings"
	"syscall"
	"testing"
)

// Inline, the terminal's own scrollback has each finished item once, whatever happens to the size
// of the window; the box is not left in it.
func TestScreenInline(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := shellScreen(t, pl)
	s.tmux("resize-window", "-x", "100", "-y", "40")
	s.types(pl.bin+" --demo -c tui.inline=true -a untrusted", "Enter")
	s.sees("ready")
	s.types("run: echo one; seq 50 | sed s/^/line/", "Enter") // fills the screen
	s.sees("Allow this command?")
	s.answer("y")
	s.sees("Done in", "ready")
	s.types("run: touch two", "Enter")
	s.sees("Allow this command?")
	s.tmux("resize-window", "-x", "90", "-y", "40") // the terminal breaks all lines of the box
	s.sees("you can answer later")
	s.types("/help", "Enter")
	s.sees("Commands and keys")
	s.keys("Escape")
	s.gone("Commands and keys") // or the next key would be one with Alt
	s.sees("Allow this command?", "you can answer later")
	s.tmux("resize-window", "-x", "110", "-y", "40")
	s.answer("y")
	s.sees("(nothing)", "ready")
	s.types("talk 400", "Enter")
	s.sees("word20")
	s.keys("Escape")
	s.sees("interrupted after")
	s.types("/quit", "Enter")
	s.sees("to resume", "shell>")
	all := s.tmux("capture-pane", "-p", "-J", "-S", "-")
	for part, n := range map[string]int{"› run: echo one": 1, "$ echo one": 1, "$ touch two": 1, "It printed:": 2, "› talk 400": 1, "word19 ": 1, "interrupted after": 1, "Done in": 2, "╭": 0, "╰": 0, "waiting for your": 0, "Commands and keys": 0} {
		if got := strings.Count(all, part); got != n {
			t.Errorf("%q is %d times in the scrollback, not %d:\n%s", part, got, n, all)
		}
	}
	s.sane()
}

// After kill -9 the terminal is usable, and what was said is there.
func TestScreenInlineSuddenEnd(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := shellScreen(t, pl)
	s.types(pl.bin+" --demo -c tui.inline=true 'run: sleep 600'", "Enter")
	s.sees("running", "working")
	s.signal(syscall.SIGKILL)
	s.sees("› run: sleep 600", "the conversation is saved", "to resume: fermata resume "+pl.conversation())
	s.keys("Enter")
	s.sees("shell>")
	s.sane()
}
