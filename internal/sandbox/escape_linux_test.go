package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/protocol"
	"golang.org/x/sys/unix"
)

// escape is something that a confined command must not be able to do. It is
// tried with a shell script; it worked if something outside has changed or, with
// byExit, if the script ended well.
type escape struct {
	name   string
	script string
	dir    string // below the workspace
	byExit bool

	apart    bool // would change the mounts of this machine, if not confined
	rootOnly bool // works for root alone, even with full access
	userOnly bool // tells nothing if done by root
	mounts   bool // is prevented by mounts alone
	scopes   bool // is prevented by a newer Landlock alone
}

var escapes = []escape{
	// files outside
	{name: "make a file", script: `echo x > $OUT/new`},
	{name: "overwrite a file", script: `echo x > $OUT/file`},
	{name: "append to a file", script: `echo x >> $OUT/file`},
	{name: "from a thread", script: `t thread $OUT/file`},
	{name: "through a symbolic link", script: `ln -s $OUT/file link && echo x > link`},
	{name: "through a link to the directory", script: `ln -s $OUT link && echo x > link/new`},
	{name: "through dots", script: `echo x > sub/../../outside/file`},
	{name: "through /proc/self/root", script: `echo x > /proc/self/root$OUT/file`},
	{name: "through /proc/self/cwd", script: `cd $OUT && echo x > /proc/self/cwd/file`},
	{name: "through the agent's root", script: `echo x > /proc/$AGENT/root$OUT/file`},
	{name: "through the agent's directory", script: `echo x > /proc/$AGENT/cwd$UP$OUT/file`},
	{name: "through a hard link", script: `ln $OUT/file hard && echo x >> hard`},
	{name: "move out", script: `mv file $OUT/new`},
	{name: "move in", script: `mv $OUT/file new`},
	{name: "exchange", script: `t exchange file $OUT/file`},
	{name: "truncate", script: `truncate -s 0 $OUT/file`},
	{name: "delete", script: `rm -f $OUT/file`},
	{name: "make a directory", script: `mkdir $OUT/new`},
	{name: "delete a directory", script: `rmdir $OUT/dir`},
	{name: "make a symbolic link", script: `ln -s x $OUT/new`},
	{name: "make a pipe", script: `mkfifo $OUT/new`},
	{name: "make a socket", script: `t unix $OUT/new; test -S $OUT/new`},
	{name: "change the mode", script: `chmod 777 $OUT/file`, mounts: true},
	{name: "change the mode of an open file", script: `t fchmod $OUT/file`, mounts: true},
	{name: "change the owner", script: `chown $(id -u) $OUT/file`, mounts: true},
	{name: "give away", script: `chown 1234 $OUT/file`, rootOnly: true, mounts: true},
	{name: "change the times", script: `touch -d 2001-01-01 $OUT/file`, mounts: true},
	{name: "set an attribute", script: `t setxattr $OUT/file`, mounts: true},
	{name: "make a device", script: `t mknod dev`, byExit: true, rootOnly: true},
	{name: "a device inside", script: `t open sub/device`, byExit: true, rootOnly: true, mounts: true},
	{name: "write a disk", script: `t open /dev/loop0`, byExit: true, rootOnly: true},
	{name: "change the kernel", script: `cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname`, byExit: true, rootOnly: true},

	// protected inside
	{name: "add a hook", script: `echo x > .git/hooks/new`},
	{name: "change a hook", script: `echo x >> .git/hooks/old`},
	{name: "move a hook in", script: `mv file .git/hooks/new`},
	{name: "link a hook in", script: `ln file .git/hooks/new`},
	{name: "exchange a hook", script: `t exchange file .git/hooks/old`},
	{name: "a hook by its hard link", script: `ln .git/hooks/old hard && echo x >> hard`},
	{name: "a hook by its number", script: `t handle . .git/hooks/old`, rootOnly: true},
	{name: "a hook from within", script: `echo x > hooks/new`, dir: ".git"},
	{name: "a hook from below", script: `echo x > new`, dir: ".git/hooks"},
	{name: "a hook through the agent's root", script: `echo x > /proc/$AGENT/root$WS/.git/hooks/new`},
	{name: "a hook through the shim's root", script: `echo x > /proc/$PPID/root$WS/.git/hooks/new`, rootOnly: true},
	{name: "make a hook executable", script: `chmod +x .git/hooks/old`, mounts: true},
	{name: "configure git", script: `echo x >> .git/config`},
	{name: "remove the repository", script: `rm -rf .git`},
	{name: "move the repository aside", script: `mv .git other && mkdir .git`},
	{name: "exchange the repository", script: `mkdir other && t exchange other .git`},
	{name: "mount over the repository", script: `t mount sub .git`, byExit: true, rootOnly: true, apart: true},
	{name: "unmount the protection", script: `t umount .git; echo x > .git/hooks/new`, apart: true},
	{name: "remount the protection", script: `t remount .git; echo x > .git/hooks/new`, apart: true},
	{name: "remount the world", script: `t remount /; echo x > $OUT/new`, apart: true},
	{name: "fermata's home", script: `echo x >> .fermata/config.toml`},
	{name: "new in fermata's home", script: `echo x > .fermata/new`},
	{name: "move fermata's home", script: `mv .fermata other && mkdir .fermata`},

	// network
	{name: "TCP", script: `t dial tcp $TCP`, byExit: true},
	{name: "UDP", script: `t dial udp $UDP`, byExit: true},
	{name: "DNS", script: `t dns $UDP`, byExit: true},
	{name: "listen", script: `t listen tcp 127.0.0.1:0`, byExit: true},
	{name: "listen on IPv6", script: `t socket ` + itoa(unix.AF_INET6), byExit: true},
	{name: "netlink", script: `t socket ` + itoa(unix.AF_NETLINK), byExit: true},
	{name: "packets", script: `t socket ` + itoa(unix.AF_PACKET), byExit: true, rootOnly: true},
	{name: "socket to the hypervisor", script: `t socket ` + itoa(unix.AF_VSOCK), byExit: true},
	{name: "an abstract socket", script: `t dial unix $ABSTRACT`, byExit: true},
	{name: "a socket outside", script: `t dial unix $SOCKET`, byExit: true},
	{name: "a datagram outside", script: `t dial unixgram $DGRAM`, byExit: true},
	{name: "a socket behind a link", script: `ln -s $SOCKET s && t dial unix $WS/s`, byExit: true},
	{name: "a socket under a new name", script: `ln $SOCKET s && t dial unix $WS/s`, byExit: true},

	// other processes
	{name: "trace the agent", script: `t ptrace $AGENT`, byExit: true},
	{name: "open the agent's memory", script: `t open /proc/$AGENT/mem`, byExit: true},
	{name: "write the agent's memory", script: `t poke $AGENT $MEMORY`, byExit: true},
	{name: "read the agent's environment", script: `cat /proc/$AGENT/environ >/dev/null`, byExit: true},
	{name: "look at the agent's files", script: `readlink /proc/$AGENT/fd/0`, byExit: true},
	{name: "signal the agent", script: `kill -CONT $AGENT`, byExit: true, scopes: true},
	{name: "signal the shim", script: `kill -CONT $PPID`, byExit: true, scopes: true},
	{name: "kill the shim", script: `kill -KILL $PPID`, byExit: true, scopes: true},
	{name: "kill a process", script: `kill -KILL $VICTIM`, byExit: true, scopes: true},
	{name: "kill a process by its file", script: `t pidfd $VICTIM`, byExit: true, scopes: true},
	{name: "limit a process", script: `t prlimit $VICTIM`, byExit: true},
	{name: "shared memory", script: `t shm $SEGMENT`, byExit: true, mounts: true},
	{name: "a shared file", script: `echo x > $SHARED`},
	{name: "the user's terminal", script: `echo x > $PTS`, byExit: true},
	{name: "read the user's terminal", script: `t open $PTS`, byExit: true},

	// the kernel
	{name: "a user namespace", script: `t userns`, byExit: true},
	{name: "unshare", script: `unshare -U true`, byExit: true},
	{name: "a mount namespace", script: `unshare -m true`, byExit: true, rootOnly: true},
	{name: "the agent's namespace", script: `t setns /proc/$AGENT/ns/ipc`, byExit: true, rootOnly: true},
	{name: "a new root", script: `t chroot sub`, byExit: true, rootOnly: true},
	{name: "io_uring", script: `t call ` + itoa(unix.SYS_IO_URING_SETUP), byExit: true},
	{name: "perf events", script: `t call ` + itoa(unix.SYS_PERF_EVENT_OPEN), byExit: true},
	{name: "keys", script: `t call ` + itoa(unix.SYS_KEYCTL), byExit: true},
	{name: "new mounts", script: `t call ` + itoa(unix.SYS_FSOPEN), byExit: true, rootOnly: true},
	{name: "another architecture", script: `$I386`, byExit: true},
	{name: "a set-uid program", script: `test "$($SETUID -u)" = 0`, byExit: true, userOnly: true},
}

func itoa(n int) string { return strconv.Itoa(n) }

// setuidVariable names a program of root that prints who runs it. Only root can
// make it, before he tests as an ordinary user.
const setuidVariable = "FERMATA_SANDBOX_SETUID"

// tells says whether the escape can tell anything here and now.
func (e escape) tells(full bool) bool {
	switch {
	case e.userOnly && (os.Getuid() == 0 || os.Getenv(setuidVariable) == ""):
		return false
	case e.rootOnly && os.Getuid() != 0 && full:
		return false
	}
	return true
}

// try reports whether e works in a fresh world.
func (e escape) try(t *testing.T, a *agent, in prison) (worked bool, output string) {
	t.Helper()
	w := newWorld(t)
	c := in.confinement(t, w)
	script := e.script
	if e.apart && c == nil && os.Getuid() == 0 {
		script = "exec unshare -m sh -c '" + toolkit + script + "'"
	}
	before := w.snapshot(t, a.shared)
	r, output := a.run(t, w, c, e.dir, script, w.targets(t, script)...)
	output = fmt.Sprintf("exit %d %s: %s", r.ExitCode, r.Signal, output)
	if e.byExit {
		return r.ExitCode == 0 || r.Err != nil, output
	}
	return w.snapshot(t, a.shared) != before, output
}

// targets tells a command of what else it must not reach.
func (w *world) targets(t *testing.T, script string) []string {
	t.Helper()
	var victim string
	if strings.Contains(script, "$VICTIM") {
		victim = itoa(newVictim(t).Process.Pid)
	}
	cwd, err := os.Getwd()
	must(t, err)
	return []string{
		"VICTIM=" + victim, "I386=" + program386(t, w), "SETUID=" + os.Getenv(setuidVariable),
		"UP=" + strings.Repeat("/..", strings.Count(cwd, "/")),
	}
}

// prison is one way to confine a command.
type prison struct {
	name    string
	ability Ability
	policy  protocol.SandboxPolicy
	pids    bool
}

func (in prison) confinement(t *testing.T, w *world) *Confinement {
	t.Helper()
	c := w.confinement(t, in.ability, in.policy)
	if c != nil {
		c.pids = in.pids
	}
	return c
}

func prisons(t *testing.T) []prison {
	t.Helper()
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	readOnly := protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	all := []prison{
		{"workspace-write", best, onlyWorkspace(), true},
		{"workspace-write without mounts", noMounts, onlyWorkspace(), false},
		{"read-only without a PID namespace", best, readOnly, false},

		{"workspace-write without a PID namespace", best, onlyWorkspace(), false},
		{"read-only", best, readOnly, true},
		{"read-only without mounts", noMounts, readOnly, false},
	}
	return all[:longtest.Default(len(all), 3)]
}

// tidy is done between two escapes: it removes what they may have made in the workspace, and fails if that is
// not as it was.
const tidy = `cd $WS; for f in link hard other s new dev; do test ! -e $f && test ! -L $f || rm -rf $f 2>/dev/null; done; set -- * .[!.]*; read -r line < file; test "$*.$line" = ".fermata .git file sub.inside" ||
	test "$*.$line" = "file sub .fermata .git.inside"`

// tryAll tries escapes one after the other in one command and one world, which takes a tenth of the time that
// a command for each takes. It returns those that may have worked.
func (in prison) tryAll(t *testing.T, a *agent, all []escape) []escape {
	t.Helper()
	w := newWorld(t)
	var scripts []string
	for _, e := range all {
		scripts = append(scripts, "cd ./"+e.dir+" && {\n"+e.script+"\n}", tidy)
	}
	env, c := w.targets(t, strings.Join(scripts, "\n")), in.confinement(t, w)
	before := w.snapshot(t, a.shared)
	codes := a.runAll(t, w, c, scripts, env...)
	changed := w.snapshot(t, a.shared) != before
	var worked []escape
	for i, e := range all {
		attempt, left := codes[2*i], codes[2*i+1]
		if left != 0 || attempt < 0 || e.byExit && attempt == 0 || !e.byExit && changed {
			worked = append(worked, e)
		}
	}
	return worked
}

// TestEscapes tries to break out of each confinement, and with full access, where
// every attempt must succeed: else it would prove nothing.
func TestEscapes(t *testing.T) {
	a := newAgent(t)
	full := prison{name: "full access", policy: protocol.SandboxPolicy{Mode: protocol.SandboxFullAccess}}
	for _, in := range prisons(t) {
		var all []escape
		for _, e := range escapes {
			if e.tells(false) && (in.ability.Mounts || !e.mounts) {
				all = append(all, e)
			}
		}
		suspects := in.tryAll(t, a, all)
		if len(suspects) > 0 {
			t.Errorf("%s: %d escapes may have worked when they were tried together", in.name, len(suspects))
		}
		for _, e := range suspects { // which of them, and how?
			if worked, out := e.try(t, a, in); worked {
				t.Errorf("%s: %q worked (%s)", in.name, e.name, out)
			}
		}
	}
	for i, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			if !inPart(i, 8) {
				t.Skip(longtest.ErrOff)
			}
			if !e.tells(true) || !e.tells(false) {
				t.Skip("tells nothing for this user")
			}
			if worked, out := e.try(t, a, full); !worked {
				t.Errorf("full access: did not work (%s)", out)
			}
		})
	}
}

// canConfine skips the test on a machine that cannot do all there is.
func canConfine(tb testing.TB) Ability {
	tb.Helper()
	a := Probe()
	if a.Missing() != "" || !a.Mounts || a.Landlock < landlockScopes {
		tb.Skipf("this machine cannot do everything: %+v", a)
	}
	return a
}
