package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// Without a terminal a prompt is one turn, in words.
func TestWithoutATerminal(t *testing.T) {
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

func TestLightByEnv(t *testing.T) {
	for v, want := range map[string]bool{"": false, "15;0": false, "0;15": true, "0;default;7": true, "15": false} {
		if lightByEnv(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}

func TestBranchAndChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	pl := newPlace(t)
	ctx := t.Context()
	if got := branch(ctx, pl.work); got != "" {
		t.Errorf("outside a repository the branch is %q", got)
	}
	if _, err := treeChanges(ctx, pl.work); err == nil {
		t.Error("outside a repository something differs")
	}
	pl.file("a.txt", "one\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "trunk"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "m"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", pl.work}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	pl.file("a.txt", "two\n")
	pl.file("new.txt", "")
	if got := branch(ctx, pl.work); got != "trunk" {
		t.Errorf("the branch is %q", got)
	}
	diff, err := treeChanges(ctx, pl.work)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the diff", diff, "-one\n", "+two\n", "untracked: new.txt\n")
	files, err := gitFiles(pl.work)(ctx)
	slices.Sort(files)
	if err != nil || strings.Join(files, " ") != "a.txt new.txt" {
		t.Errorf("files %q, %v", files, err)
	}
	if _, err := gitFiles(t.TempDir())(ctx); err == nil {
		t.Error("files outside a repository")
	}
}

func TestEditorCommand(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sed -i s/a/b/")
	t.Setenv("TMPDIR", t.TempDir())
	cmd, read, err := editorCommand(t.Context(), "a text")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := read(); err != nil || text != "b text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := read(); err == nil {
		t.Error("the file is left")
	}
	t.Setenv("EDITOR", "")
	t.Setenv("PATH", t.TempDir())
	if _, _, err := editorCommand(t.Context(), ""); err == nil {
		t.Error("there is an editor where there is none")
	}
}

func TestProcessName(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	eventually(t, "it is sleep", func() bool { return processName(cmd.Process.Pid) == "sleep 600" })
	if got := processName(1 << 30); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
