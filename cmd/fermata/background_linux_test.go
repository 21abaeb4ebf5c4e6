package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc"
	p "github.com/fermata-agent/fermata/protocol"
)

const (
	execFlavour  = "experimental_use_exec_command_tool=true"
	shellFlavour = "experimental_use_exec_command_tool=false"
)

// unhung is foreground without an ear for the end of its terminal.
const unhung = `sh -c 'trap "" HUP; echo $$ > "$0/unhung"; exec sleep 600' "$PWD/pids"
`

// gatherBehind is gather with a command that goes on in the background. After it
// the turn does the given step of the demo model's plan.
func gatherBehind(t *testing.T, pl *place, then string, parts ...string) *crowd {
	t.Helper()
	return gatherBehindWith(t, pl, nil, then, parts...)
}

func gatherBehindWith(t *testing.T, pl *place, flags []string, then string, parts ...string) *crowd {
	t.Helper()
	c := newCrowd(t, pl, parts)
	c.process = pl.start(append([]string{"exec", "--demo", "-c", execFlavour, "plan: start: sh victim; " + then}, flags...)...)
	c.id = pl.conversation()
	pl.awaitEvent(c.id, "the command goes to the background", func(b p.Body) bool { _, ok := b.(*p.BackgroundStarted); return ok })
	c.await(t, len(parts))
	return c
}

// ended returns how the background command ended.
func (c *crowd) ended() *p.BackgroundEnded {
	c.t.Helper()
	var end *p.BackgroundEnded
	for _, e := range c.pl.events(c.id) {
		if b, ok := e.Body.(*p.BackgroundEnded); ok {
			if end != nil {
				c.t.Error("it ended twice")
			}
			if e.Turn != 0 {
				c.t.Errorf("its end belongs to turn %d", e.Turn)
			}
			end = b
		}
	}
	if end == nil {
		c.t.Fatal("the background command has no end")
	}
	return end
}

func TestBackgroundCommandIsStoppedWithItsTurn(t *testing.T) {
	t.Parallel()
	for _, stop := range stops[:longtest.Default(len(stops), 1)] {
		t.Run(stop.name, func(t *testing.T) {
			t.Parallel()
			asUsers(t, func(t *testing.T, pl *place) {
				c := gatherBehind(t, pl, "run: sleep 600", deaf, daemon, foreground)
				list := pl.must("ps", c.id)
				line := regexp.MustCompile(`(?m)^1 +running +\d+s +(\d+) +sh victim$`).FindStringSubmatch(list)
				if line == nil {
					t.Fatalf("ps:\n%s", list)
				}
				argv, _ := os.ReadFile("/proc/" + line[1] + "/cmdline")
				contains(t, "the process that ps names", strings.ReplaceAll(string(argv), "\x00", " "), "sh victim")
				c.signal(stop.signal)
				if code := c.code(); code != stop.code {
					t.Errorf("exit code %d, want %d", code, stop.code)
				}
				for _, r := range c.rows {
					if lives(r) {
						t.Errorf("%v lives", r)
					}
				}
				pl.noneLeft(t, c.rows)
				if end := c.ended(); end.Reason != p.Interrupted || end.Result.Killed == 0 {
					t.Errorf("it ended as %+v", end)
				}
				contains(t, "ps", pl.must("ps", c.id), "no background commands are running")
				contains(t, "what the model was told", pl.sound(c.id), "background commands have ended", "sh victim")
			})
		})
	}
}

func TestBackgroundCommandEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		pl.file("hold", "until test -e go; do sleep 0.05; done") // until all of it was seen
		c := gatherBehind(t, pl, "run: sh hold; type 1: ", deaf, daemon, foreground)
		pl.file("go", "")
		if code := c.code(); code != exitOK {
			t.Errorf("exit code %d\n%s", code, c.err.String())
		}
		for _, r := range c.rows {
			if lives(r) {
				t.Errorf("%v lives", r)
			}
		}
		pl.noneLeft(t, c.rows)
		if end := c.ended(); end.Reason != p.Interrupted {
			t.Errorf("it ended as %+v", end)
		}
		contains(t, "what the model was told", pl.sound(c.id), "background commands have ended", "sh victim")
	})
}

func TestBackgroundCommandDiesWithTheProgram(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		c := gatherBehind(t, pl, "run: sleep 600", deaf, daemon, foreground)
		c.signal(syscall.SIGKILL)
		c.code()
		pl.noneLeft(t, c.rows)
		contains(t, "ps", pl.must("ps", c.id), "gone")
		_, errs, _ := pl.run("exec", "resume", c.id, "what happened?")
		contains(t, "stderr", errs, "background command 1 (/bin/bash -c sh victim) was interrupted")
		if end := c.ended(); end.Reason != p.Crashed {
			t.Errorf("it ended as %+v", end)
		}
		pl.sound(c.id)
	})
}

// If its supervisor is killed together with fermata, opening the conversation
// ends what is left.
func TestBackgroundCommandIsReclaimed(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		c := gatherBehindWith(t, pl, []string{"-c", "pid_namespace=false"}, "run: sleep 600", deaf, unhung)
		c.killWithShims()
		if n := len(written(c.pids)); n != 2 {
			t.Fatalf("%d processes are left, so this proves nothing", n)
		}
		contains(t, "kill", pl.must("kill", c.id, "1"), "stopped 1: sh victim")
		pl.noneLeft(t, c.rows)
		pl.sound(c.id)
	})
}

// Somebody else ends the command; the turn goes on and hears of it.
func TestBackgroundCommandIsKilledFromOutside(t *testing.T) {
	t.Parallel()
	asUsers(t, func(t *testing.T, pl *place) {
		pl.file("hold", "until test -e go; do sleep 0.05; done")
		c := gatherBehind(t, pl, "run: sh hold; type 1: ", deaf, daemon, foreground)
		eventually(t, "what it printed is shown", func() bool { return strings.Contains(pl.must("show", c.id), "behind") })
		contains(t, "kill", pl.must("kill", c.id, "1"), "stopped 1: sh victim")
		for _, r := range c.members {
			if lives(r) {
				t.Errorf("%v lives", r)
			}
		}
		pl.awaitEvent(c.id, "its end is recorded", func(b p.Body) bool { _, ok := b.(*p.BackgroundEnded); return ok })
		_, errs, code := pl.run("kill", c.id, "1")
		if code != exitFailed {
			t.Errorf("killed again: exit code %d", code)
		}
		contains(t, "stderr", errs, "background command 1: no such background command is running", "fermata ps ID")
		pl.file("go", "")
		if code := c.code(); code != exitOK {
			t.Errorf("exit code %d\n%s", code, c.err.String())
		}
		contains(t, "what the model was told", c.err.String()+c.out.String(), "Process was ended by SIG")
		if end := c.ended(); end.Reason != p.Interrupted {
			t.Errorf("it ended as %+v", end)
		}
		contains(t, "what the model is told", pl.sound(c.id), "background commands have ended", "sh victim")
	})
}

// The command has ended, but whoever runs the conversation was halted and has not
// said so yet.
func TestKillOfWhatHasJustEnded(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	c := gatherBehind(t, pl, "run: sleep 600", foreground)
	c.halt()
	contains(t, "kill", pl.must("kill", c.id, "1"), "stopped 1: sh victim")
	_, errs, code := pl.run("kill", c.id, "1")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, "stderr", errs, "background command 1: no such background command is running")
	c.signal(syscall.SIGCONT)
	c.signal(syscall.SIGINT)
	c.code()
	pl.sound(c.id)
}

// Programs are kept from drawing on a terminal that no reader sees, unless the user
// wants it otherwise.
func TestEnvironmentOnATerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	show := []string{"exec", "--demo", "-c", execFlavour, "run: echo $TERM-$PAGER-$GIT_PAGER-$MINE"}
	contains(t, "ours", pl.must(show...), "dumb-cat-cat-\n")
	set := []string{"-c", `shell_environment_policy.set={TERM="xterm", PAGER="more", GIT_PAGER="less", MINE="x"}`}
	contains(t, "the user's", pl.must(append(show, set...)...), "xterm-more-less-x\n")
	contains(t, "the user's, for one that is safe", pl.must("exec", "--demo", "-c", execFlavour, set[0], set[1],
		"run: git --no-pager status; grep -z ^GIT_PAGER= /proc/self/environ"), "GIT_PAGER=cat")
}

// What is recorded of a command that runs has a limit, and whoever reads it knows.
func TestPsOfALongOutput(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	c := gatherBehind(t, pl, "run: sleep 600", `(until test -e go; do sleep 0.05; done; head -c 3000000 /dev/zero | tr '\0' x) &
`+foreground)
	pl.file("go", "")
	var out, errs string
	eventually(t, "it has printed all", func() bool {
		out, errs, _ = pl.run("ps", c.id, "1")
		return strings.Contains(errs, "the first MiB")
	})
	if len(out) != 1<<20 {
		t.Errorf("%d bytes of it, want %d", len(out), 1<<20)
	}
	c.signal(syscall.SIGINT)
	c.code()
}

func TestKillOfNothing(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "talk 1")
	id := pl.conversation()
	contains(t, "ps", pl.must("ps", id), "no background commands are running")
	for _, tt := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"kill", id, "1"}, exitFailed, "background command 1: no such background command"},
		{[]string{"kill", id, "x"}, exitUsage, `"x" is not the number`},
		{[]string{"kill", id}, exitUsage, "wrong number of arguments"},
		{[]string{"ps", id, "7"}, exitFailed, "background command 7"},
		{[]string{"ps", "no such"}, exitFailed, "no such"},
	} {
		_, errs, code := pl.run(tt.args...)
		if code != tt.code {
			t.Errorf("%q: exit code %d, want %d", tt.args, code, tt.code)
		}
		contains(t, strings.Join(tt.args, " "), errs, tt.text)
	}
}

// A confined command sees nobody but itself, unless it shall.
func TestPIDNamespace(t *testing.T) {
	t.Parallel()
	if !proc.PIDNamespaces() {
		t.Skip("no PID namespaces here")
	}
	asUsers(t, func(t *testing.T, pl *place) {
		look := "test -d /proc/" + strconv.Itoa(os.Getpid()) + " && echo others || echo none"
		for _, tt := range []struct{ mode, key, want string }{
			{"read-only", "", "none"},
			{"workspace-write", "", "none"},
			{"workspace-write", "pid_namespace=false", "others"},
			{"danger-full-access", "", "others"},
		} {
			flags := []string{"-s", tt.mode}
			if tt.key != "" {
				flags = append(flags, "-c", tt.key)
			}
			for _, args := range [][]string{
				slices.Concat([]string{"exec", "--demo"}, flags, []string{"run: " + look}),
				slices.Concat([]string{"sandbox"}, flags, []string{"--", "sh", "-c", look}),
			} {
				if out := strings.Fields(pl.must(args...)); out[len(out)-1] != tt.want {
					t.Errorf("%q: %q, want it to see %s", args, out, tt.want)
				}
			}
		}
	})
}
