package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc"
)

// nobody is an ordinary user that every system has.
const nobody = 65534

// The parts of a command that does not want to end. Each writes its number into a
// file of the directory pids.
const (
	// deaf ignores every polite signal and holds the output.
	deaf = `sh -c 'trap "" TERM HUP INT; echo $$ > "$0/deaf"; while :; do sleep 600; done' "$PWD/pids" &
`
	// daemon has left its session, its parents, its environment and its output, and traps signals.
	daemon = `(env -i PATH="$PATH" setsid sh -c 'trap "echo again" TERM HUP INT; echo $$ > "$0/daemon"; while :; do sleep 600; done' "$PWD/pids" </dev/null >/dev/null 2>&1 &)
`
	// foreground is what the command waits for.
	foreground = `sh -c 'echo $$ > "$0/foreground"; exec sleep 600' "$PWD/pids"
`
)

// A crowd is a running fermata with such a command.
type crowd struct {
	*process
	pl   *place
	pids string // where the parts of the command write their numbers
	id   string
	rows []row // of all that runs below it

	members []row // those of them that wrote their numbers
}

// gather starts fermata and waits until every part of the command lives.
func gather(t *testing.T, pl *place, parts ...string) *crowd {
	t.Helper()
	return gatherWith(t, pl, nil, parts...)
}

// gatherWith is gather with more flags.
func gatherWith(t *testing.T, pl *place, flags []string, parts ...string) *crowd {
	t.Helper()
	c := newCrowd(t, pl, parts)
	c.process = pl.start(append([]string{"exec", "--demo", "run: echo begun; sh victim; echo over"}, flags...)...)
	c.id = pl.conversation()
	pl.awaitText(c.id, "begun\n")
	c.await(t, len(parts))
	return c
}

// newCrowd writes the command down.
func newCrowd(t *testing.T, pl *place, parts []string) *crowd {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	c := &crowd{pl: pl, pids: filepath.Join(pl.work, "pids")}
	for _, err := range []error{os.Mkdir(c.pids, 0o777), os.Chmod(c.pids, 0o777)} { // whatever the umask
		if err != nil {
			t.Fatal(err)
		}
	}
	pl.file("victim", "echo behind\n"+strings.Join(parts, ""))
	return c
}

// await waits until n parts live, and notes them and all else below fermata.
func (c *crowd) await(t *testing.T, n int) {
	t.Helper()
	eventually(t, "all of the command lives", func() bool {
		c.members = written(c.pids)
		return len(c.members) == n
	})
	c.rows = append(below(c.cmd.Process.Pid), c.members...)
	t.Cleanup(func() { // what a failed test leaves must not run on
		for _, r := range c.rows {
			if lives(r) {
				_ = syscall.Kill(r.pid, syscall.SIGKILL)
			}
		}
	})
}

// killWithShims kills fermata and the supervisors of its commands as if in the
// same instant.
func (c *crowd) killWithShims() {
	c.halt() // it must not act on the death of a shim
	for _, r := range c.rows {
		if r.ppid == c.cmd.Process.Pid {
			_ = syscall.Kill(r.pid, syscall.SIGKILL)
		}
	}
	c.signal(syscall.SIGKILL)
	c.code()
	for _, r := range c.rows { // a supervisor that is about to die would be asked to end the command
		if r.ppid == c.cmd.Process.Pid {
			eventually(c.t, "the supervisor is gone", func() bool {
				now, ok := readRow(r.pid)
				return !ok || now.start != r.start || now.state == "Z"
			})
		}
	}
}

// halt stops fermata, and returns when none of its threads runs any more.
func (c *crowd) halt() {
	c.signal(syscall.SIGSTOP)
	eventually(c.t, "it stands still", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
		for _, name := range threads {
			text, err := os.ReadFile(name)
			if _, state, ok := strings.Cut(string(text), ") "); err == nil && ok && !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return len(threads) > 0
	})
}

// written are the living processes whose numbers stand in the files of dir. They
// work in the directory above, and the numbers are those of their namespace.
func written(dir string) []row {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	var numbers []string
	for _, name := range files {
		if text, _ := os.ReadFile(name); strings.HasSuffix(string(text), "\n") {
			numbers = append(numbers, strings.TrimSpace(string(text)))
		}
	}
	var list []row
	for _, r := range processes() {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", r.pid))
		if err == nil && cwd == filepath.Dir(dir) && slices.Contains(numbers, numberInside(r.pid)) {
			list = append(list, r)
		}
	}
	return list
}

// numberInside is the number of a process in its own namespace.
func numberInside(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(numbers)
			return f[len(f)-1]
		}
	}
	return ""
}

// asUsers runs a test for the user who runs the tests and, if that is root and long tests run, for
// an ordinary one: package proc has the tests of all users.
func asUsers(t *testing.T, test func(t *testing.T, pl *place)) {
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		test(t, newPlace(t))
	})
	t.Run("nobody", func(t *testing.T) {
		longtest.Only(t)
		if os.Geteuid() != 0 {
			t.Skip("only root can become another user")
		}
		t.Parallel()
		test(t, newPlaceFor(t, nobody))
	})
}

func TestNothingSurvivesAStop(t *testing.T) {
	t.Parallel()
	for _, stop := range stops[:longtest.Default(len(stops), 1)] { // TestSignalStopsTheTurn has the others
		t.Run(stop.name, func(t *testing.T) {
			t.Parallel()
			asUsers(t, func(t *testing.T, pl *place) {
				c := gather(t, pl, deaf, daemon, foreground)
				c.signal(stop.signal)
				if code := c.code(); code != stop.code {
					t.Errorf("exit code %d, want %d", code, stop.code)
				}
				// Stopped means that nothing is left now, not that it will soon be.
				for _, r := range c.rows {
					if lives(r) {
						t.Errorf("%v lives", r)
					}
				}
				pl.noneLeft(t, c.rows)
				contains(t, "stderr", c.err.String(), " · 1 command, ", " processes killed\n")
				contains(t, "what the model was told", pl.sound(c.id), "  begun", "Processes killed: ")
			})
		})
	}
}

func TestNothingSurvivesAKill(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		c := gather(t, pl, deaf, daemon, foreground)
		c.signal(syscall.SIGKILL)
		if code := c.code(); code != -1 {
			t.Errorf("exit code %d, want none", code)
		}
		pl.noneLeft(t, c.rows) // before anything looks at the conversation again
		contains(t, "what the model was told", pl.sound(c.id), "crashed or was killed", "Interrupted: `echo begun; sh victim; echo over`", "  begun")
	})
}

func TestNothingSurvivesATimeout(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		// Long enough for the command to be complete on a busy machine.
		c := gatherWith(t, pl, []string{"-c", shellFlavour, "-c", "command_timeout_ms=8000"}, deaf, daemon, foreground)
		if code := c.code(); code != exitOK {
			t.Errorf("exit code %d, want %d: a command that takes too long does not end the turn", code, exitOK)
		}
		pl.noneLeft(t, c.rows)
		contains(t, "stderr", c.err.String(), "  begun\n", "  (timed out, ")
		contains(t, "stdout", c.out.String(), "took longer than 8s", "begun")
		pl.sound(c.id)
	})
}

// If the supervisor of the command is killed in the same instant as fermata, the
// kernel ends the command.
func TestNothingSurvivesAKillOfAll(t *testing.T) {
	t.Parallel()
	if !proc.PIDNamespaces() {
		t.Skip("no PID namespaces here")
	}
	asUsers(t, func(t *testing.T, pl *place) {
		c := gather(t, pl, deaf, daemon, foreground)
		c.killWithShims()
		pl.noneLeft(t, c.rows) // before anything looks at the conversation again
		contains(t, "what the model was told", pl.sound(c.id), "crashed or was killed", "Interrupted: `echo begun; sh victim; echo over`", "  begun")
	})
}

// Without a namespace what is left is ended when the conversation is opened. (A
// daemon that left everything cannot be told from a stranger then: see package
// proc.)
func TestLeftoversAreReclaimed(t *testing.T) {
	t.Parallel()
	opens := map[string]func(id string) []string{
		"resume": func(id string) []string { return []string{"exec", "resume", id, "what happened?"} },
		"fsck":   func(id string) []string { return []string{"fsck", "--repair", id} },
	}
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asUsers(t, func(t *testing.T, pl *place) {
				c := gatherWith(t, pl, []string{"-c", "pid_namespace=false"}, deaf, foreground)
				c.killWithShims()
				if n := len(written(c.pids)); n != 2 {
					t.Fatalf("%d processes are left, so this proves nothing", n)
				}

				_, errs, code := pl.run(open(c.id)...)
				if code != 0 {
					t.Errorf("exit code %d\n%s", code, errs)
				}
				contains(t, "stderr", errs, " that still ran")
				pl.noneLeft(t, c.rows)
				pl.sound(c.id)
			})
		})
	}
}
