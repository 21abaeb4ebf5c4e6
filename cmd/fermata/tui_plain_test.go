package main

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// Without a terminal a prompt is one turn, in words.
func TestWithoutATerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	out, errs, code := pl.run("--demo", "talk 3")
	if code != 0 || out != "[demo] word1 word2 word3\n" || !strings.Contains(errs, "stdin is not a terminal: running as fermata exec") {
		t.Errorf("exit code %d, out %q, err %q", code, out, errs)
	}
	id := pl.conversation()
	out, errs, code = pl.run("resume", id, "talk 2")
	if code != 0 || out != "[demo] word1 word2\n" || !strings.Contains(errs, "running as fermata exec") {
		t.Errorf("resume: exit code %d, out %q, err %q", code, out, errs)
	}
	if out, _, code = pl.run("resume", "--last", "talk 1"); code != 0 || out != "[demo] word1\n" {
		t.Errorf("resume --last: exit code %d, out %q", code, out)
	}
	if _, errs, code = pl.run("resume"); code != exitUsage || !strings.Contains(errs, "name one, or use --last") {
		t.Errorf("resume of nothing: exit code %d, err %q", code, errs)
	}
}

func TestPipedPrompt(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	for text, want := range map[string]string{"talk 2": "[demo] word1 word2\n", "": "Usage:"} {
		cmd := pl.command(context.Background(), "--demo")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s", text, err, out)
		}
	}
}

// A word is taken for a command with a slip, unless it is said to be a message.
func TestOneWord(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, errs, code := pl.run("--demo", "lst")
	if code != exitUsage || !strings.Contains(errs, "did you mean list") || !strings.Contains(errs, "fermata -- lst") {
		t.Errorf("exit code %d, err %q", code, errs)
	}
	if _, errs, code = pl.run("--demo", "fix", "it"); code != exitUsage || !strings.Contains(errs, "needs quotes") {
		t.Errorf("two words: exit code %d, err %q", code, errs)
	}
	if out, _, code := pl.run("--demo", "--", "hello"); code != 0 || !strings.Contains(out, "I understand") {
		t.Errorf("after --: exit code %d, out %q", code, out)
	}
}

// On a terminal that can do nothing, words are printed.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"TERM=dumb", "TERM="} {
		pl := newPlace(t)
		pl.env = append(pl.env, name)
		cmd := exec.Command(pl.bin, "--demo", "talk 3")
		cmd.Dir, cmd.Env = pl.work, pl.env
		tty, err := pty.Start(cmd)
		if err != nil {
			t.Skipf("no terminal can be had here: %v", err)
		}
		out, _ := io.ReadAll(tty) // it ends with an error when the terminal does
		_ = cmd.Wait()
		contains(t, name, string(out), "running as fermata exec", "word3")
		if strings.Contains(string(out), "\x1b[?1049h") {
			t.Errorf("%s: there is another screen: %q", name, out)
		}
	}
}
