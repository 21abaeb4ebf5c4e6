package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/fermata-agent/fermata/internal/model/demo"
)

// shellScreen is a screen with an interactive shell.
func shellScreen(t *testing.T, pl *place) *screen {
	t.Helper()
	pl.env = append(pl.env, "PS1=shell> ", "PROMPT_COMMAND=", "HISTFILE=")
	s := newScreen(t, pl, "exec bash --norc --noprofile -i")
	s.sees("shell>")
	return s
}

// flags are what the terminal is switched to.
func (s *screen) flags() string {
	return strings.TrimSpace(s.tmux("display-message", "-p", "screen #{alternate_on} cursor #{cursor_flag} mouse #{mouse_any_flag}"))
}

const plainFlags = "screen 0 cursor 1 mouse 0"

// sane checks that the terminal is as the shell left it.
func (s *screen) sane() {
	s.t.Helper()
	eventually(s.t, "the terminal is plain", func() bool { return s.flags() == plainFlags })
	s.keys("C-l")
	s.types("stty -a | tr ';' '\\n' | tr ' ' '\\n' | grep -cx -e icanon -e echo -e isig -e icrnl -e opost", "Enter")
	s.sees("\n5\n")
}

func TestScreenSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			pl := screenPlace(t)
			s := shellScreen(t, pl)
			s.types(pl.bin+" --demo 'run: echo begun; sleep 600'", "Enter")
			s.sees("begun", "working")
			if s.flags() == plainFlags {
				t.Fatal("the terminal is plain while the program runs")
			}
			did := below(s.fermata())
			s.signal(sig)
			s.sees("interrupted after", "to resume: fermata resume ", "shell>")
			for _, r := range did {
				if lives(r) {
					t.Errorf("it lives:%v", r)
				}
			}
			s.sane()
			pl.fsck(pl.conversation())
		})
	}
}

// Also after an end that it cannot do anything about the terminal is restored,
// and how to go on is printed: kill -9, and a crash outside of the screen, for
// which SIGQUIT stands.
func TestScreenSuddenEnd(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			pl := screenPlace(t)
			s := shellScreen(t, pl)
			s.types(pl.bin+" --demo 'run: sleep 600'", "Enter")
			s.sees("running", "working")
			did := below(s.fermata())
			s.signal(sig)
			s.sees("the conversation is saved", "to resume: fermata resume "+pl.conversation())
			if sig == syscall.SIGQUIT {
				contains(t, "the end", s.tmux("capture-pane", "-p", "-S", "-", "-J"), "SIGQUIT", "goroutine")
			}
			s.keys("Enter")
			s.sees("shell>")
			if sig == syscall.SIGKILL {
				s.sane()
			} else { // a shell that is quicker than the guard keeps the modes that it finds after such an end
				eventually(t, "the terminal is plain", func() bool { return s.flags() == plainFlags })
			}
			eventually(t, "nothing of it lives", func() bool { return !slices.ContainsFunc(did, lives) })
		})
	}
}

// A terminal that goes away is a stop like any other.
func TestScreenHangup(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be had here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pl.bin, "--demo", "run: echo begun; sleep 600")
	cmd.Dir, cmd.Env = pl.work, pl.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go func() { // ends when the terminal is closed
		b := make([]byte, 4096)
		for {
			if _, err := master.Read(b); err != nil {
				return
			}
		}
	}()
	id := pl.conversation()
	pl.awaitText(id, "begun\n")
	did := below(cmd.Process.Pid)
	master.Close()
	_ = cmd.Wait() // a signal's code
	for _, r := range did {
		if lives(r) {
			t.Errorf("it lives:%v", r)
		}
	}
	contains(t, "the conversation", pl.must("show", id), "interrupted after")
	pl.fsck(id)
}

// A terminal that hangs up and the shell in it both tell us: that is one wish.
func TestScreenSameSignalTwice(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := shellScreen(t, pl)
	s.types(pl.bin+" --demo 'run: echo begun; sleep 600'", "Enter")
	s.sees("begun", "working")
	pid := s.fermata()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	s.sees("interrupted after", "to resume: fermata resume ", "shell>")
	s.sane()
}

// Ctrl-Z gives the shell its terminal; fg gives it back.
func TestScreenSuspend(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := shellScreen(t, pl)
	s.types(pl.bin+" --demo 'talk 5'", "Enter")
	s.sees("word5", "ready")
	s.keys("C-z")
	s.sees("Stopped", "shell>")
	s.sane()
	s.types("fg", "Enter")
	s.sees("word5", "ready")
	s.types("talk 7", "Enter")
	s.sees("word7", "ready")
	s.types("/quit", "Enter")
	s.sees("to resume")
	s.sane()
}

// Who stops it from elsewhere leaves it no time to give the terminal back; the shell
// has changed that when it goes on.
func TestScreenStoppedByOthers(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := shellScreen(t, pl)
	s.types(pl.bin+" --demo 'talk 5'", "Enter")
	s.sees("word5", "ready")
	s.signal(syscall.SIGSTOP)
	s.sees("Stopped", "shell>")
	s.types("fg", "Enter")
	s.gone("Stopped")
	s.types("talk 7", "Enter")
	s.sees("word7", "ready")
	s.types("/quit", "Enter")
	s.sees("to resume")
	s.sane()
}

// Where no shell could go on with it, Ctrl-Z does nothing but say so.
func TestScreenSuspendWithoutAShell(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo())
	s.sees("ready")
	s.keys("C-z")
	s.sees("there is no shell to return to")
	s.types("talk 3", "Enter")
	s.sees("word3", "ready")
}

func TestScreenEditor(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	pl.file("editor", "#!/bin/sh\necho ' from the editor' >> \"$2\"\n")
	pl.env = append(pl.env, "VISUAL="+pl.work+"/editor -flag", "TMPDIR="+pl.dir)
	s := newScreen(t, pl, pl.demo())
	s.sees("ready")
	s.types("text", "C-g")
	s.sees("│ › text", "from the editor")
	s.types("", "C-c")
	left, err := os.ReadDir(pl.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), "fermata-") {
			t.Errorf("%s is left", f.Name())
		}
	}
}

// A signal ends it also while an editor has the terminal.
func TestScreenSignalInTheEditor(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	pl.file("editor", "#!/bin/sh\necho editing\nexec sleep 600\n")
	pl.env = append(pl.env, "VISUAL="+pl.work+"/editor", "TMPDIR="+pl.dir)
	s := shellScreen(t, pl)
	s.types(pl.bin+" --demo 'run: echo begun; sleep 700'", "Enter")
	s.sees("begun", "working", "1 s · Esc")
	s.keys("C-g")
	s.sees("editing")
	did := below(s.fermata())
	s.signal(syscall.SIGTERM)
	s.sees("interrupted after", "to resume", "shell>")
	for _, r := range did {
		if lives(r) {
			t.Errorf("it lives:%v", r)
		}
	}
	s.sane()
}

// Any size, also while it works.
func TestScreenResize(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'talk 400'"))
	s.sees("word5")
	for _, size := range [][2]string{{"40", "10"}, {"120", "40"}, {"20", "5"}, {"80", "24"}} {
		s.tmux("resize-window", "-x", size[0], "-y", size[1])
		s.sees("working")
	}
	s.keys("Escape")
	s.sees("interrupted after", "ready")
}

func TestScreenFirstRun(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.bin+" -c model_providers.ollama.base_url="+nowhere+"; echo exit code $?; exec sleep 600")
	s.sees("No model is set up yet", "Ollama does not answer")
	s.golden("first_run")
	s.keys("1")
	s.sees("Key for openai")
	s.types("secret-key", "BSpace")
	s.sees("•••••••••▏")
	s.golden("key")
	s.keys("Escape")
	s.gone("Key for")
	s.types("", "4")
	s.keys("5")
	s.sees("demo · demo", "ready")
	s.types("talk 3", "Enter")
	s.sees("word3", "ready")
}

// A provider that is configured and has no key is said to be what is missing. The
// key that is entered is used, and commands do not get it.
func TestScreenMissingKey(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	srv := httptest.NewServer(demo.Handler())
	defer srv.Close()
	home := filepath.Join(pl.dir, "home", "fermata")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "model = 'demo'\nmodel_context_window = 100000\nmodel_provider = 'mine'\n[model_providers.mine]\nbase_url = '" + srv.URL + "/v1'\nwire_api = 'responses'\nenv_key = 'MINE_API_KEY'\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, pl, pl.bin+" -s danger-full-access -a never; echo exit code $?; exec sleep 600")
	s.sees("provider mine needs a key: set MINE_API_KEY", "enter a key for mine")
	s.keys("1")
	s.sees("Key for mine")
	s.types("sesame", "Enter")
	s.sees("Save the key for next time? [Y/n]")
	s.types("y", "Enter")
	s.sees("demo · mine", "ready")
	s.types("run: env | grep -c MINE_API_KEY", "Enter")
	s.sees("It printed", "ready")
	if text := s.text(); !strings.Contains(text, "\n   0\n") {
		t.Errorf("the command has the key:\n%s", text)
	}
	s.types("/quit", "Enter")
	s.sees("exit code 0")
	contains(t, "doctor", pl.must("doctor"), "saved in a file: MINE_API_KEY")
	for _, e := range pl.events(pl.conversation()) {
		if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), "sesame") {
			t.Errorf("the key is in the conversation: %s", b)
		}
	}
}
