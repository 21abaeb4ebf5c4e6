package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// without is an environment that lacks some variables.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

// Root may write everywhere, so an ordinary user tries it.
func TestReadOnlyHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	t.Parallel()
	pl := newPlaceFor(t, nobody)
	home := filepath.Join(pl.dir, "home")
	if err := os.Chmod(home, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{pl.env, without(pl.env, "FERMATA_HOME")} {
		pl.env = env
		out, errs, code := pl.run("exec", "--demo", "write ran: yes")
		if code != exitFailed || out != "" {
			t.Errorf("exit code %d, stdout %q", code, out)
		}
		contains(t, "stderr", errs, "fermata: create conversation ", "permission denied\n", "hint: set FERMATA_HOME to a directory that you can write to\n")
		out, _, code = pl.run("exec", "--demo", "--json", "write ran: yes")
		if code != exitFailed || strings.Count(out, "\n") != 1 {
			t.Errorf("--json: exit code %d, stdout %q", code, out)
		}
		contains(t, "line", out, `{"type":"error","message":"create conversation `, "permission denied")
		if _, err := os.Stat(filepath.Join(pl.work, "ran")); err == nil {
			t.Error("it did something all the same")
		}
		if out := pl.must("exec", "--demo", "--ephemeral", "run: echo still works"); !strings.Contains(out, "still works\n") {
			t.Errorf("stdout %q", out)
		}
	}
}

func TestHomeUnset(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	all := pl.env
	pl.env = without(all, "HOME", "FERMATA_HOME")
	out, errs, code := pl.run("exec", "--demo", "write ran: yes")
	if code != exitFailed || out != "" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	contains(t, "stderr", errs, "fermata: neither FERMATA_HOME nor the home directory is known", "hint: "+app.HomeHint+"\n")
	if _, err := os.Stat(filepath.Join(pl.work, "ran")); err == nil {
		t.Error("it did something all the same")
	}
	pl.env = without(all, "HOME")
	contains(t, "stdout", pl.must("exec", "--demo", "run: echo homeless"), "homeless\n")
}

// Without a terminal anywhere, as under cron: nothing is drawn, and nothing is asked for.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.env = append(pl.env, "TERM=xterm-256color")
	pr := &process{t: t, done: make(chan struct{})}
	pr.cmd = pl.command(context.Background(), "exec", "--demo", "run: (: </dev/tty) 2>/dev/null || echo no terminal")
	pr.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pr.cmd.Stdout, pr.cmd.Stderr = &pr.out, &pr.err
	pr.begin(func() {})
	if code := pr.code(); code != exitOK || !pr.out.has("no terminal\n") {
		t.Errorf("exit code %d, stdout %q\n%s", code, pr.out.String(), pr.err.String())
	}
	if strings.ContainsAny(pr.out.String()+pr.err.String(), "\x1b\r") {
		t.Errorf("stderr %q", pr.err.String())
	}
}

// A prompt of a thousand lines comes to the model as it was, as an argument, on
// stdin, and beside an argument.
func TestPromptOfAThousandLines(t *testing.T) {
	t.Parallel()
	ok := modeltest.Respond(modeltest.Say("ok"))
	s := newSite(t, wirecheck.Responses, "", ok, ok, ok)
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("%d: \"quoted\" <tag> \\ ä\t😀", i))
	}
	text := strings.Join(lines, "\n")
	for i, c := range []struct {
		stdin, want string
		args        []string
	}{
		{"", text, []string{"exec", text}},
		{text + "\n", text, []string{"exec"}},
		{text, "look at this\n\n<stdin>\n" + text + "\n</stdin>", []string{"exec", "look at this"}},
	} {
		if out, errs, code := s.runWith(c.stdin, c.args...); code != exitOK || out != "ok\n" {
			t.Fatalf("%d: exit code %d, stdout %q\n%s", i, code, out, errs)
		}
		if got := tail(s.srv.Wait(i+1), 1)[0]; got != "user  "+c.want {
			t.Errorf("%d: the model was told %d bytes, want %d", i, len(got), len(c.want))
		}
	}
	s.fsck()
}

// A directory that is gone is said to be gone, also as lines.
func TestWorkingDirectoryDeleted(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	gone := filepath.Join(pl.dir, "gone")
	script := `mkdir gone && cd gone && rmdir ../gone && exec "$0" exec --demo "$@"`
	for _, json := range []bool{false, true} {
		args := []string{"-c", script, pl.bin, "run: true"}
		if json {
			args = append(args, "--json")
		}
		cmd := pl.command(t.Context())
		cmd.Path, cmd.Args, cmd.Dir = "/bin/sh", append([]string{"sh"}, args...), pl.dir
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != exitFailed {
			t.Errorf("exit code %d", code)
		}
		contains(t, "stderr", stderr.String(), "fermata: the working directory no longer exists\n")
		if got := strings.HasPrefix(stdout.String(), `{"type":"error","message":"the working directory no longer exists"`); got != json {
			t.Errorf("stdout %q", stdout.String())
		}
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("it is there, so this proves nothing")
	}
}
