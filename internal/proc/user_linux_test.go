package proc

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

const nobody = 65534

// TestAsOrdinaryUser runs the tests of this package again as nobody.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the user")
	}
	longtest.Only(t) // it runs everything again

	asNobody(t, "TestNothingSurvivesStop", "-test.run=^Test", "-test.skip=AsOrdinaryUser|AmongHidden|Capture|Ladder")
}

// asNobody runs tests again as nobody; want is one that must have run.
func asNobody(t *testing.T, want string, args ...string) {
	t.Helper()
	dir := publicDir(t)
	cmd := exec.CommandContext(t.Context(), copySelf(t, dir, 0o755), append([]string{"-test.v", "-test.short"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, longtest.Variable + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+want) {
		t.Errorf("the tests did not run:\n%s", out)
	}
}

// TestAmongHiddenProcesses has a /proc that shows an ordinary user only what he may
// trace, as on machines that many share.
func TestAmongHiddenProcesses(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount /proc")
	}
	needs(t, "unshare", "mount", "setpriv")
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "proc", "proc", "/proc").CombinedOutput(); err != nil {
		t.Skipf("root may not mount /proc here: %v %s", err, out)
	}
	skip := "-test.skip=^$"
	if !longtest.On() {
		skip = "-test.skip=^TestEndOfWhatDoesNotWantTo$"
	}
	dir := publicDir(t)
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c",
		`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh",
		copySelf(t, dir, 0o755), "-test.v", "-test.short", "-test.run=^(TestResultOfCommand|TestEnd.*|TestReclaim.*|TestUserNamespace.*)$", skip)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, longtest.Variable + "=" + os.Getenv(longtest.Variable)}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReclaimWithHaltedShim") {
		t.Errorf("%v\n%s", err, out)
	}
}

// publicDir is a directory in which anybody may write.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copySelf puts a copy of the test binary where anybody can run it.
func copySelf(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	name := filepath.Join(dir, "proc.test")
	to, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Close(), os.Chmod(name, mode)); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestShimCannotBeTraced looks from the command into its shim, with the check
// that tracing needs.
func TestShimCannotBeTraced(t *testing.T) {
	if os.Getuid() == 0 { // who can trace everybody
		asNobody(t, t.Name(), "-test.run=^"+t.Name()+"$")
		return
	}
	r, out := runScript(t, newSpawner(t), "cat /proc/self/maps >/dev/null && echo own; cat /proc/$PPID/maps >/dev/null && echo shim")
	if out.Stdout() != "own\n" {
		t.Errorf("result %+v, could look into %q, want only its own", r, out.Stdout())
	}
}

// TestSurvivorsAreReported has a process of another user, which an ordinary user
// may not end.
func TestSurvivorsAreReported(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a set-uid program")
	}
	dir := publicDir(t)
	copySelf(t, dir, 0o755|os.ModeSetuid)
	ready := filepath.Join(dir, "ready")
	// The agent runs as nobody, its command as root, and both are told apart by
	// what they write.
	script := helperVariable + "=root ./proc.test " + ready + " & wait"
	result := filepath.Join(dir, "result")
	cmd := exec.Command(copySelfAs(t, dir, "agent"))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", helperVariable + "=stopper", "SCRIPT=" + script, "READY=" + ready, "RESULT=" + result}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	table, tableErr := tree.Table()
	if tableErr != nil {
		t.Fatal(tableErr)
	}
	survivors := 0
	for _, p := range table {
		args, _ := os.ReadFile("/proc/" + itoa(p.PID) + "/cmdline")
		if strings.Contains(string(args), ready) {
			survivors++
			_ = tree.Signal(p, syscall.SIGKILL)
		}
	}
	if err != nil {
		t.Fatalf("agent: %v\n%s", err, out)
	}
	text, _ := os.ReadFile(result)
	if survivors != 1 || !strings.Contains(string(text), "1 "+ErrSurvivors.Error()) {
		t.Errorf("%d survivors, error %q, want one and to be told", survivors, text)
	}
}

// copySelfAs is copySelf with a name of its own.
func copySelfAs(t *testing.T, dir, name string) string {
	t.Helper()
	sub := filepath.Join(dir, name)
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	return copySelf(t, sub, 0o755)
}

// stopperMain is an agent that stops its command when it is ready, and writes
// down what it was told.
func stopperMain() int {
	s, err := NewSpawner()
	if err != nil {
		return 3
	}
	c, err := s.Start(contextForHelper(), Spec{Argv: []string{"sh", "-c", os.Getenv("SCRIPT")}, Bound: 400 * time.Millisecond}, nil)
	if err != nil {
		return 4
	}
	c.Release()
	tick := time.NewTicker(time.Millisecond)
	for !exists(os.Getenv("READY")) {
		<-tick.C
	}
	c.Stop(nil)
	r := c.Wait()
	if r.Err == nil {
		return 5
	}
	if err := os.WriteFile(os.Getenv("RESULT"), []byte(r.Err.Error()), 0o600); err != nil {
		return 6
	}
	return 0
}
