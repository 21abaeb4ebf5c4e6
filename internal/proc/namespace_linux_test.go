package proc

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc/tree"
	"golang.org/x/sys/unix"
)

func TestNamespace(t *testing.T) {
	if !pidNamespaces() {
		t.Skip("no PID namespaces here")
	}
	s := newSpawner(t)
	mark := newMark()
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100." + mark}, PIDNamespace: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "the other command runs", func() bool { return len(marked(t, mark)) == 1 })
	if id := c.Identity(); id.Leader != 0 || !livesAs(id.PID, id.Start) {
		t.Errorf("identity %+v, want a living shim and no leader: its number has no meaning here", id)
	} else if name := commandName(tree.CommandPID(id)); name != "sleep" {
		t.Errorf("the command by its number here is %q", name)
	}

	r, out := runInNamespace(t, s, `echo $PPID; kill -9 1; test -d /proc/$$ && echo seen
		grep -l '[`+mark[:1]+"]"+mark[1:]+`' /proc/[0-9]*/cmdline; id -u`)
	want := "1\nseen\n" + itoa(os.Getuid()) + "\n"
	if r.ExitCode != 0 || r.Err != nil || out.Text() != want {
		t.Errorf("result %+v, output %q, want %q", r, out.Text(), want)
	}
	c.Stop(nil)
	c.Wait()
	noneMarked(t, mark)
}

// TestNamespaceGivesNoRights has an ordinary user's command look at what it may
// do: entering the namespace took rights that must not be passed on.
func TestNamespaceGivesNoRights(t *testing.T) {
	if !pidNamespaces() || os.Getuid() == 0 {
		t.Skip("only for an ordinary user with PID namespaces")
	}
	r, out := runInNamespace(t, newSpawner(t), "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v '\\b0000000000000000$'; echo end")
	if r.Err != nil || out.Text() != "end\n" {
		t.Errorf("result %+v, the command has rights:\n%s", r, out.Text())
	}
}

func runInNamespace(t *testing.T, s *Spawner, script string) (Result, *Capture) {
	t.Helper()
	return runSpec(t, s, Spec{Argv: []string{"sh", "-c", script}, PIDNamespace: true})
}

// TestNoNamespaceToBeHad runs where PID namespaces cannot be had: the command
// runs all the same. They are kept from root by a limit, and from an ordinary user
// as in a container: who does not see all of /proc may not mount another.
func TestNoNamespaceToBeHad(t *testing.T) {
	if !pidNamespaces() {
		t.Skip("here anyway")
	}
	out, err := amongOwnMounts("hermit")
	if want := "true false 3\n"; err != nil || out != want {
		t.Errorf("output %q, error %v, want %q", out, err, want)
	}
}

// amongOwnMounts plays a part where one may mount, also an ordinary user.
func amongOwnMounts(part string, args ...string) (string, error) {
	h := exec.Command(os.Args[0], args...)
	h.Env = append(os.Environ(), helperVariable+"="+part)
	h.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	keepIDs(h.SysProcAttr)
	out, err := h.CombinedOutput()
	return string(out), err
}

// hermitMain keeps PID namespaces away and runs commands that ask for one. It
// prints whether there were any before and are any now, and how many commands ran.
func hermitMain() int {
	before := PIDNamespaces()
	err := unix.Mount("none", "/proc/fs", "tmpfs", 0, "")
	if os.Getuid() == 0 {
		err = os.WriteFile("/proc/sys/user/max_pid_namespaces", []byte("0"), 0)
	}
	if err != nil {
		fmt.Println(err)
	}
	s, err := NewSpawner()
	if err != nil {
		return 3
	}
	ran := 0
	for range 3 {
		if r := s.Run(contextForHelper(), Spec{Argv: []string{"true"}, PIDNamespace: true}, nil); r.Err == nil && r.ExitCode == 0 {
			ran++
		}
	}
	s.Close()
	fmt.Println(before, PIDNamespaces(), ran)
	return 0
}

// TestNamespaceNumbersAreScattered has programs that leave their numbers in files,
// for others to find them by.
func TestNamespaceNumbersAreScattered(t *testing.T) {
	if !pidNamespaces() || !exists("/proc/sys/kernel/ns_last_pid") {
		t.Skip("no PID namespaces here, or their numbers cannot be chosen")
	}
	s := newSpawner(t)
	seen := map[string]bool{}
	for range 4 {
		_, out := runInNamespace(t, s, "echo $$")
		seen[out.Text()] = true
	}
	if len(seen) < 3 { // that two of them are the same may happen
		t.Errorf("numbers of four commands: %q", slices.Collect(maps.Keys(seen)))
	}
	for n := range seen {
		if n, err := strconv.Atoi(strings.TrimSpace(n)); err != nil || n < 300 {
			t.Errorf("number %d, which outside is the system's: %v", n, err)
		}
	}
}

// TestSpareFollowsMounts has a shim that was started before something is mounted,
// and before something is unmounted, which is then not busy because of it.
func TestSpareFollowsMounts(t *testing.T) {
	if !pidNamespaces() {
		t.Skip("no PID namespaces here")
	}
	out, err := amongOwnMounts("mounter", t.TempDir())
	if want := "1\n0\n"; err != nil || out != want {
		t.Errorf("output %q, error %v, want %q", out, err, want)
	}
}

// mounterMain mounts and unmounts something among shared mounts, as most systems
// have them, while a shim waits for its command, and prints how many of the mounts
// that then sees.
func mounterMain() int {
	dir := os.Args[1]
	s, err := NewSpawner()
	if err != nil {
		return 3
	}
	defer s.Close()
	look := Spec{Argv: []string{"grep", "-c", dir, "/proc/self/mountinfo"}, PIDNamespace: true}
	report := func() {
		var out Capture
		s.Run(contextForHelper(), look, out.Write)
		fmt.Print(out.Text())
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		fmt.Println(err)
	}
	s.Run(contextForHelper(), look, nil)
	awaitSpare(s)
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		fmt.Println(err)
	}
	report()
	awaitSpare(s)
	if err := unix.Unmount(dir, 0); err != nil {
		fmt.Println(err)
	}
	report()
	return 0
}

// awaitSpare waits until the spare with a PID namespace is ready.
func awaitSpare(s *Spawner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.spares[kind{pids: true}]
	sh := <-ready
	sh.reports <- <-sh.reports // its hello
	ready <- sh
}
