package main

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// What is printed on a terminal and in a pipe, with each way to say whether it
// shall be coloured. The line that shows what goes on is not colour, but goes with
// a terminal that can draw over it.
func TestColorOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		env     []string
		args    []string
		colored bool
		drawn   bool
	}{
		{"auto", []string{"TERM=xterm-256color"}, nil, true, true},
		{"never", []string{"TERM=xterm-256color"}, []string{"--color", "never"}, false, true},
		{"NO_COLOR", []string{"TERM=xterm-256color", "NO_COLOR=1"}, nil, false, true},
		{"a flag is stronger than NO_COLOR", []string{"TERM=xterm-256color", "NO_COLOR=1"}, []string{"--color=always"}, true, true},
		{"a terminal that only prints", []string{"TERM=dumb"}, nil, false, false},
		{"a flag is stronger than TERM", []string{"TERM=dumb"}, []string{"--color=always"}, true, false},
		{"auto by name", []string{"TERM=xterm-256color"}, []string{"--color", "auto"}, true, true},
		{"NO_COLOR that is empty", []string{"TERM=xterm-256color", "NO_COLOR="}, nil, true, true},
		{"a terminal of which nothing is known", nil, nil, false, false},
	}[:longtest.Default(9, 6)] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pl.env = append(pl.env, c.env...)
			pr := pl.startOnTerminal(append([]string{"exec", "--demo", "run: echo hello; sleep 0.5; exit 3"}, c.args...)...)
			if code := pr.code(); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, pr.err.String())
			}
			if got := pr.err.has("\x1b[31m  (exit code 3"); got != c.colored {
				t.Errorf("coloured: %t, want %t\n%q", got, c.colored, pr.err.String())
			}
			if !c.colored && strings.Contains(strings.ReplaceAll(pr.err.String(), "\r\x1b[K", ""), "\x1b") {
				t.Errorf("escape sequences:\n%q", pr.err.String())
			}
			if got := pr.err.has("\r\x1b[K"); got != c.drawn {
				t.Errorf("line that shows what goes on: %t, want %t\n%q", got, c.drawn, pr.err.String())
			}
			if out := pr.out.String(); strings.Contains(out, "\x1b") || !strings.Contains(out, "hello\n") {
				t.Errorf("stdout %q", out)
			}
		})
	}
}

func TestColorInAPipe(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.env = append(pl.env, "TERM=xterm-256color")
	for _, c := range []struct {
		args    []string
		colored bool
	}{
		{nil, false},
		{[]string{"--color", "never"}, false},
		{[]string{"--color", "always"}, true},
		{[]string{"--color", "always", "--json"}, false},
	} {
		out, errs, code := pl.run(append([]string{"exec", "--demo", "run: echo hello"}, c.args...)...)
		if code != exitOK || strings.Contains(out, "\x1b") || !strings.Contains(out, "hello") {
			t.Errorf("%q: exit code %d, stdout %q", c.args, code, out)
		}
		if got := strings.Contains(errs, "\x1b["); got != c.colored {
			t.Errorf("%q: coloured: %t\n%q", c.args, got, errs)
		}
		if strings.Contains(errs, "\r") {
			t.Errorf("%q: the line that shows what goes on is in a pipe\n%q", c.args, errs)
		}
	}
}
