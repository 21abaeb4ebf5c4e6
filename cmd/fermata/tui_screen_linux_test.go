package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A screen is the binary in a terminal that can be looked at.
type screen struct {
	t  *testing.T
	pl *place

	pane string // its name in tmux; empty is the current one
}

// newScreen starts a command line in a terminal of 80 by 24.
func newScreen(t *testing.T, pl *place, line string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skipf("there is no tmux to look at the screen with: %v", err)
	}
	s := &screen{t: t, pl: pl}
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "cd "+pl.work+" && "+line)
	t.Cleanup(func() {
		cmd := s.command("kill-server")
		_ = cmd.Run()       // it may have ended by itself
		pl.noneLeft(t, nil) // who is hung up still writes for a while
	})
	return s
}

// screenPlace is a place whose directory is shown the same everywhere.
func screenPlace(t *testing.T) *place {
	pl := newPlace(t)
	for i, v := range pl.env {
		if strings.HasPrefix(v, "HOME=") {
			pl.env[i] = "HOME=" + pl.dir
		}
	}
	pl.env = append(pl.env, "TERM=screen-256color", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "SHELL=/bin/sh")
	return pl
}

func (s *screen) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", filepath.Join(s.pl.dir, "tmux")}, args...)...)
	cmd.Dir, cmd.Env = s.pl.work, s.pl.env
	return cmd
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// to is a command of tmux that is about this screen.
func (s *screen) to(command string) []string {
	if s.pane == "" {
		return []string{command}
	}
	return []string{command, "-t", s.pane}
}

// keys presses keys by tmux's names for them, such as C-c or Enter.
func (s *screen) keys(names ...string) {
	s.t.Helper()
	s.tmux(append(s.to("send-keys"), names...)...)
}

// types types a text, then a key.
func (s *screen) types(text, key string) {
	s.t.Helper()
	s.tmux(append(s.to("send-keys"), "-l", text)...)
	s.keys(key)
}

// text is what is to be seen.
func (s *screen) text() string {
	s.t.Helper()
	return s.tmux(append(s.to("capture-pane"), "-p")...)
}

// sees waits until the screen shows all of the parts.
func (s *screen) sees(parts ...string) {
	s.t.Helper()
	var now string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the screen:\n%s", now)
		}
	}()
	for _, part := range parts {
		if strings.Contains(now, part) {
			continue // to look costs a process
		}
		eventually(s.t, "the screen shows "+part, func() bool {
			now = s.text()
			return strings.Contains(now, part)
		})
	}
}

// gone waits until the screen no longer shows a part.
func (s *screen) gone(part string) {
	s.t.Helper()
	eventually(s.t, "the screen no longer shows "+part, func() bool { return !strings.Contains(s.text(), part) })
}

// pid is the number of the process in the terminal.
func (s *screen) pid() int {
	s.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(s.tmux(append(s.to("display-message"), "-p", "#{pane_pid}")...)))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// fermata is the number of the fermata that runs in the terminal.
func (s *screen) fermata() int {
	s.t.Helper()
	var found int
	eventually(s.t, "fermata runs", func() bool {
		for _, r := range append(below(s.pid()), row{pid: s.pid()}) {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.pid))
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid))
			if err == nil && exe == s.pl.bin && strings.HasPrefix(string(line), s.pl.bin) {
				found = r.pid
				return true
			}
		}
		return false
	})
	return found
}

func (s *screen) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.fermata(), sig); err != nil {
		s.t.Fatal(err)
	}
}

// What differs from run to run.
var (
	idForm    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timeForm  = regexp.MustCompile(`\b\d+(\.\d+)? (ms|s|seconds)\b`)
	killForm  = regexp.MustCompile(`\b\d+ process(es)?\b`)
	wordForm  = regexp.MustCompile(`word1\b[\s\S]*word\d+`)
	spinForm  = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)
	blankForm = regexp.MustCompile(`\n{3,}`)
	gapForm   = regexp.MustCompile(` {2,}`)
	usedForm  = regexp.MustCompile(`context [\d.]+( k)?`)
	sideForm  = regexp.MustCompile(`(?m)(/place.*?) +│$`)
	clockForm = regexp.MustCompile(`· \d\d:\d\d\b`)
	pidForm   = regexp.MustCompile(`process \d+`)
)

// golden waits until the screen is what testdata/tui/NAME.txt says.
func (s *screen) golden(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", "tui", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(s.quiet()), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	var got string
	defer func() {
		if d := cmp.Diff(string(want), got); d != "" {
			s.t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, d)
		}
	}()
	eventually(s.t, "the screen is "+file, func() bool {
		got = s.normal()
		return got == string(want)
	})
}

// quiet is the screen when it has not changed for a while.
func (s *screen) quiet() string {
	last, since := "", time.Now()
	eventually(s.t, "the screen is quiet", func() bool {
		if now := s.normal(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
	return last
}

// normal is the screen without what differs from run to run.
func (s *screen) normal() string {
	s.t.Helper()
	text := strings.TrimRight(s.text(), "\n")
	text = strings.ReplaceAll(text, s.pl.dir, "/place")
	for _, n := range []struct {
		form *regexp.Regexp
		as   string
	}{
		{idForm, "ID"},
		{timeForm, "N s"},
		{killForm, "N processes"},
		{wordForm, "word1 … wordN"},
		{spinForm, "⠋"},
		{usedForm, "context N"},
		{sideForm, "$1 │"},
		{pidForm, "process PID"},
		{clockForm, "· HH:MM"},
	} {
		text = n.form.ReplaceAllString(text, n.as)
	}
	lines := strings.Split(text, "\n")
	lines[len(lines)-1] = gapForm.ReplaceAllString(lines[len(lines)-1], "  ")
	return blankForm.ReplaceAllString(strings.Join(lines, "\n"), "\n\n") + "\n"
}

// demo is the command line of the binary with the demo model.
func (s *place) demo(more ...string) string {
	return strings.Join(append([]string{s.bin, "--demo"}, more...), " ") + "; echo exit code $?; exec sleep 600"
}

// answer presses a key of a dialog as soon as that takes keys.
func (s *screen) answer(key string) {
	s.t.Helper()
	s.gone("until you pause")
	s.keys(key)
}

// newScreenAgain starts another command line in the same place.
func newScreenAgain(s *screen, line string) *screen {
	s.t.Helper()
	s.tmux("respawn-pane", "-k", "cd "+s.pl.work+" && "+line)
	return s
}

// window starts another command line beside, in a terminal of its own.
func (s *screen) window(line string) *screen {
	s.t.Helper()
	if s.pane == "" {
		s.pane = strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_id}"))
	}
	id := s.tmux("new-window", "-P", "-F", "#{pane_id}", "cd "+s.pl.work+" && "+line)
	return &screen{t: s.t, pl: s.pl, pane: strings.TrimSpace(id)}
}
