package proc

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

func TestResultOfCommand(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         Result
		text         string
	}{
		{name: "success", script: "echo hello", text: "hello\n"},
		{name: "failure", script: "echo no >&2; exit 7", want: Result{ExitCode: 7}, text: "no\n"},
		{name: "signal", script: "kill -USR1 $$", want: Result{ExitCode: -1, Signal: "SIGUSR1"}},
		{name: "standard input is empty", script: "cat; echo end", text: "end\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, out := runScript(t, newSpawner(t), c.script)
			if r.Duration <= 0 {
				t.Errorf("duration %v, want some", r.Duration)
			}
			r.Duration = 0
			if d := cmp.Diff(c.want, r); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
			if out.Text() != c.text {
				t.Errorf("output %q, want %q", out.Text(), c.text)
			}
		})
	}
}

// TestCountOfAShimGivenUp has a shim that was killed, because it was too slow,
// when it had ended the tree and not said so.
func TestCountOfAShimGivenUp(t *testing.T) {
	w := &watch{Command: &Command{shim: &shim{}}, gaveUp: true}
	w.hear(report{Ending: &ending{Found: 2}})
	w.hear(report{Ending: &ending{Found: 5}})
	if r := w.result(); r.Killed != 5 || r.Err != nil {
		t.Errorf("killed %d, error %v, want what the shim had found", r.Killed, r.Err)
	}
	w.hear(report{Gone: &aftermath{Killed: 4}})
	if r := w.result(); r.Killed != 4 {
		t.Errorf("killed %d, want what the shim says at last", r.Killed)
	}
	w.stormed = 40
	if r := w.result(); r.Killed != 40 {
		t.Errorf("killed %d, want those that the shim did not see, too", r.Killed)
	}
}

func TestSpecReachesCommandUnchanged(t *testing.T) {
	s := newSpawner(t)
	dir := t.TempDir()
	odd := "\xff\xfe\n'\"\\ \u2028 ü"
	r, out := runSpec(t, s, Spec{
		Argv: []string{"sh", "-c", `pwd; printf '%s|' "$1" "$ODD" "$TWICE"; env | grep -c .`, "sh", odd},
		Dir:  dir,
		Env:  []string{"PATH=" + os.Getenv("PATH"), "ODD=" + odd, "TWICE=1", "TWICE=2", "LONG=" + strings.Repeat("x", 100<<10)},
	})
	head := dir + "\n" + odd + "|" + odd + "|2|"
	if r.Err != nil || !strings.HasPrefix(out.Text(), head) {
		t.Errorf("result %+v, output %q, want it to begin with %q", r, out.Text(), head)
	}
}

func TestDefaultsOfSpec(t *testing.T) {
	t.Setenv("FERMATA_TEST_INHERITED", "yes")
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, out := runScript(t, newSpawner(t), `echo "$PWD $FERMATA_TEST_INHERITED"; umask`)
	if want := wd + " yes\n"; !strings.HasPrefix(out.Text(), want) {
		t.Errorf("output %q, want it to begin with %q", out.Text(), want)
	}
}

// TestCommandHasOnlyItsFiles looks for descriptors of shim and fermata that
// leaked, among them one that fermata itself inherited by mistake.
func TestCommandHasOnlyItsFiles(t *testing.T) {
	leak, err := syscall.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)

	_, out := runScript(t, newSpawner(t), "ls /proc/$$/fd")
	if got, want := out.Stdout(), "0\n1\n2\n"; got != want {
		t.Errorf("the command has open files %q, want %q", got, want)
	}
}

func TestSpawnErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		spec Spec
		is   error
		says string
	}{
		{"not in PATH", Spec{Argv: []string{"no-such-program"}}, fs.ErrNotExist, "no-such-program"},
		{"no such file", Spec{Argv: []string{dir + "/none"}}, fs.ErrNotExist, dir + "/none"},
		{"not executable", Spec{Argv: []string{plain}}, fs.ErrPermission, plain},
		{"a directory", Spec{Argv: []string{dir}}, nil, dir},
		{"not a program", Spec{Argv: []string{garbage}}, syscall.ENOEXEC, garbage},
		{"no working directory", Spec{Argv: []string{"true"}, Dir: dir + "/gone"}, fs.ErrNotExist, dir + "/gone"},
		{"working directory is a file", Spec{Argv: []string{"true"}, Dir: plain}, syscall.ENOTDIR, plain},
		{"empty PATH", Spec{Argv: []string{"true"}, Env: []string{"A=b"}}, fs.ErrNotExist, "true"},
		{"confinement fails", Spec{Argv: []string{"true"}, Confine: json.RawMessage(`{"fail":"not here"}`)}, nil, "confine: not here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := runSpec(t, newSpawner(t), c.spec)
			if r.Err == nil || r.ExitCode != -1 || r.Stopped || r.TimedOut || r.Killed != 0 {
				t.Fatalf("result %+v, want an error and nothing else", r)
			}
			if c.is != nil && !errors.Is(r.Err, c.is) {
				t.Errorf("error %q is not %v", r.Err, c.is)
			}
			if !strings.Contains(r.Err.Error(), c.says) {
				t.Errorf("error %q does not name %q", r.Err, c.says)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	s := newSpawner(t)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	if _, err := s.Start(cancelled, Spec{Argv: []string{"true"}}, nil); err == nil || !strings.Contains(err.Error(), "too late") {
		t.Errorf("start with a cancelled context: error %v, want its cause", err)
	}
	if _, err := s.Start(t.Context(), Spec{}, nil); err == nil {
		t.Error("start without arguments succeeded")
	}
	if _, err := s.Start(t.Context(), Spec{Argv: []string{"true"}, Confine: json.RawMessage("{")}, nil); err == nil {
		t.Error("start with a broken confinement succeeded")
	}
	s.Close()
	if _, err := s.Start(t.Context(), Spec{Argv: []string{"true"}}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: error %v, want %v", err, ErrClosed)
	}
	if r := s.Run(t.Context(), Spec{Argv: []string{"true"}}, nil); !errors.Is(r.Err, ErrClosed) || r.ExitCode != -1 {
		t.Errorf("run after close: %+v", r)
	}
}

func TestCancelledContextStopsWithCause(t *testing.T) {
	s := newSpawner(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user said so")
	r := s.Run(ctx, Spec{Argv: []string{"sh", "-c", "echo up; sleep 100"}}, func(Stream, []byte) { cancel(cause) })
	if !r.Stopped || r.TimedOut || r.Cause != cause || r.Signal == "" || r.Killed == 0 || r.Err != nil {
		t.Errorf("result %+v, want stopped for %q", r, cause)
	}
}

// TestStopAfterEndIsNoStop has a command that ends by itself while something of
// it is still there: a stop then ends the rest and does not change the result.
func TestStopAfterEndIsNoStop(t *testing.T) {
	s := newSpawner(t)
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sh", "-c", "sleep 100 & exit 5"}, Linger: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "the command has ended, and the shim has what it left", func() bool {
		return slices.ContainsFunc(childrenOf(t, c.Identity().PID), func(p tree.Process) bool { return p.Session != p.PID })
	})
	c.Stop(errors.New("late"))
	r := c.Wait()
	if r.ExitCode != 5 || r.Killed != 1 || r.Err != nil {
		t.Errorf("result %+v, want exit code 5 and one process killed", r)
	}
}

func TestPoliteEnd(t *testing.T) {
	s := newSpawner(t)
	file := filepath.Join(t.TempDir(), "cleaned")
	script := `trap 'echo cleaned > "$1"; exit 9' TERM; echo up; while :; do sleep 0.01; done`
	up := make(chan struct{})
	closeUp := sync.OnceFunc(func() { close(up) })
	c, err := s.Start(t.Context(), Spec{
		Argv: []string{"sh", "-c", script, "sh", file}, Grace: time.Minute, Bound: 2 * time.Minute,
	}, func(Stream, []byte) { closeUp() })
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	<-up
	c.Stop(nil)

	// The grace is a minute: the test ends in time only if the ladder does.
	r := c.Wait()
	if r.ExitCode != 9 || !r.Stopped || !exists(file) {
		t.Errorf("result %+v, want the exit code 9 of the trap and its file", r)
	}
}

func TestNoGrace(t *testing.T) {
	s := newSpawner(t)
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100"}, Grace: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "the command runs", func() bool { return commandName(tree.CommandPID(c.Identity())) == "sleep" })
	c.Stop(nil)
	if r := c.Wait(); r.Signal != "SIGKILL" || r.Killed != 1 {
		t.Errorf("result %+v, want SIGKILL", r)
	}
}

func TestBackgroundChildrenAreEnded(t *testing.T) {
	s := newSpawner(t)
	mark := newMark()
	r, out := runScript(t, s, "sleep 100."+mark+" & sleep 100."+mark+" & echo done; exit 4")
	noneMarked(t, mark)
	if r.ExitCode != 4 || r.Killed != 2 || r.Stopped || r.Err != nil || out.Text() != "done\n" {
		t.Errorf("result %+v, output %q, want exit code 4 and two processes killed", r, out.Text())
	}
}

// TestLastWordsOfSubstitution has a child that outlives the command by a moment,
// as shells let it: what it says is not lost.
func TestLastWordsOfSubstitution(t *testing.T) {
	t.Parallel()
	r, out := runSpec(t, newSpawner(t), Spec{
		Argv:   []string{"sh", "-c", "(sleep 0.3; echo last) & echo first"},
		Linger: time.Minute,
	})
	if r.Killed != 0 || out.Text() != "first\nlast\n" {
		t.Errorf("result %+v, output %q, want both lines and nobody killed", r, out.Text())
	}
}

func TestNoLinger(t *testing.T) {
	r, out := runSpec(t, newSpawner(t), Spec{
		Argv:   []string{"sh", "-c", "(sleep 100; echo last) & echo first"},
		Linger: -1,
	})
	if r.Killed < 1 || out.Text() != "first\n" {
		t.Errorf("result %+v, output %q, want the child killed", r, out.Text())
	}
}

func TestConfinementHoldsForCommandOnly(t *testing.T) {
	script := "grep NoNewPrivs /proc/self/status /proc/$PPID/status | sed 's/.*NoNewPrivs:[^01]*//'"
	for _, c := range []struct{ name, confine, want string }{
		{"with", `{"mark":true}`, "1\n0\n"},
		{"without", "", "0\n0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := Spec{Argv: []string{"sh", "-c", script}}
			if c.confine != "" {
				spec.Confine = json.RawMessage(c.confine)
			}
			r, out := runSpec(t, newSpawner(t), spec)
			if r.Err != nil || out.Text() != c.want {
				t.Errorf("result %+v, marks %q, want %q", r, out.Text(), c.want)
			}
		})
	}
}

func TestConfinementWithoutFunctionFails(t *testing.T) {
	o := stageOrder{Argv: bytesOf([]string{"true"}), Dir: []byte("/"), Env: bytesOf(os.Environ()), Confine: json.RawMessage("{}")}
	t.Chdir("/") // prepare changes it
	t.Setenv("PATH", os.Getenv("PATH"))
	if _, err := o.prepare(nil); err == nil {
		t.Error("a command that asks for confinement is ready without it")
	}
}

func TestWrapper(t *testing.T) {
	spec := Spec{Argv: []string{"echo", "a b"}, Wrapper: []string{"env", "-i", "--"}}
	r, out := runSpec(t, newSpawner(t), spec)
	if r.ExitCode != 0 || out.Text() != "a b\n" {
		t.Errorf("result %+v, output %q", r, out.Text())
	}
}
