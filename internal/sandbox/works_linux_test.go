package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
	"golang.org/x/sys/unix"
)

// use is something that a confined command must be able to do. The script is run
// with sh -e.
type use struct {
	name   string
	script string
	write  bool // only in workspace-write
	mounts bool // only with mounts
	needs  []string
}

var uses = []use{
	{name: "read", script: `ls -la / >/dev/null; cat /etc/passwd >/dev/null; ls -la $OUT; cat $OUT/file .git/config .fermata/config.toml`},
	{name: "devices", script: `echo x > /dev/null; echo x > /dev/zero; head -c 4 /dev/zero >/dev/null; head -c 4 /dev/urandom >/dev/null; ! echo x > /dev/full`},
	{name: "standard files", script: `echo x > /dev/stdout; echo x > /dev/stderr; echo x | cat /dev/stdin`},
	{name: "pipes", script: `echo a | cat | grep a`},
	{name: "substitution", script: `bash -c 'cat <(echo x) > >(cat)'`, needs: []string{"bash"}},
	{name: "own processes", script: `sleep 100 & p=$!; kill $p; wait $p || test $? = 143`},
	{name: "own daemon", script: `setsid sh -c 'sleep 100' & sleep 100 & kill %1 %2 2>/dev/null || kill $!`},
	{name: "own session", script: `setsid true; nice true; timeout 5 true; env -i /bin/true`},
	{name: "threads", script: `t thread /dev/null`},
	{name: "socket pair", script: `t socketpair`},
	{name: "program in memory", script: `t memfd`},
	{name: "terminals", script: `t pty`, mounts: true},
	{name: "who am I", script: `test "$(id -u)" = $UID_; test -r /proc/self/status; ps >/dev/null`, needs: []string{"ps"}},
	{name: "python", script: `python3 -c 'print(1)'`, needs: []string{"python3"}},

	{name: "files", write: true, script: `echo x > new; echo y >> new; truncate -s 1 new; chmod 755 new; touch -d 2001-01-01 new; cp -a new copy; rm copy; mv new sub/; mv sub sub2; mv sub2/new .; rm -r sub2; mkdir -p a/b/c; mv new a/b/c/d; rm -r a`},
	{name: "links and pipes", write: true, script: `ln -s file l; ln file h; mkfifo p; (echo x > p &); read v < p; test $v = x; rm l h p`},
	{name: "links across directories", write: true, mounts: true, script: `ln file sub/h; mv sub/h h2; mkdir x; mv x sub/y`},
	{name: "edit in place", write: true, script: `sed -i s/inside/changed/ file; grep changed file`},
	{name: "own sockets", write: true, script: `t unix $WS/sub/s`},
	{name: "shared memory", write: true, mounts: true, script: `t shared`},
	{name: "locks", write: true, mounts: true, needs: []string{"python3"}, script: `python3 -c '
import multiprocessing as m
def f(l, q):
    with l: q.put(1)
if __name__ == "__main__":
    c = m.get_context("fork"); l = c.Lock(); q = c.Queue()
    p = c.Process(target=f, args=(l, q)); p.start(); assert q.get() == 1; p.join()'`},
	{name: "make", write: true, needs: []string{"make"}, script: `printf 'all: a b c d\n%%:\n\t@sleep 0.01; echo $@ > $@\n' > Makefile; make -j4; cat a b c d`},
	{name: "gpg", write: true, mounts: true, needs: []string{"gpg"}, script: `mkdir -m 700 k; export GNUPGHOME=$WS/k
		gpg -q --batch --passphrase '' --quick-gen-key me ed25519; echo x | gpg -q --batch -s | gpg -q --batch -d; gpgconf --kill all`},
	{name: "compile", write: true, needs: []string{"gcc"}, script: `echo 'int main(){return 0;}' > a.c; TMPDIR=$WS gcc -o a a.c; ./a`},
}

// missing names a program that the use needs and that does not run for this user.
func (u use) missing(t *testing.T, a *agent) string {
	t.Helper()
	for _, program := range u.needs {
		if _, asked := programs[program]; !asked {
			r, _ := a.run(t, newWorld(t), nil, "", program+" --version")
			programs[program] = r.ExitCode == 0
		}
		if !programs[program] {
			return program
		}
	}
	return ""
}

// programs are those that were asked for, and whether they run.
var programs = map[string]bool{}

// TestUses has what writes, each in a workspace of its own.
func TestUses(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, u := range uses {
		if !u.write {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			if program := u.missing(t, a); program != "" {
				t.Skip(program, "does not run here")
			}
			w := newWorld(t)
			r, out := a.run(t, w, w.confinement(t, best, onlyWorkspace()), "", "set -e\n"+u.script)
			if r.ExitCode != 0 {
				t.Errorf("workspace-write: exit %d %s\n%s", r.ExitCode, r.Signal, out)
			}
			if u.mounts {
				return
			}
			w, c := withoutRepository(t, noMounts)
			if r, out := a.run(t, w, c, "", "set -e\n"+u.script); r.ExitCode != 0 {
				t.Errorf("without mounts and repository: exit %d %s\n%s", r.ExitCode, r.Signal, out)
			}
		})
	}
}

// withoutRepository is a world with a workspace that holds nothing protected: without mounts it is fully usable.
func withoutRepository(t *testing.T, ability Ability) (*world, *Confinement) {
	t.Helper()
	w := newWorld(t)
	must(t, os.RemoveAll(filepath.Join(w.ws, ".git")))
	c, err := newWith(ability, onlyWorkspace(), Place{Cwd: w.ws})
	must(t, err)
	return w, c
}

// TestUsesThatWriteNothing does them one after the other in one command.
func TestUsesThatWriteNothing(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	readOnly := protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	uid := "UID_=" + itoa(os.Getuid())
	check := func(name string, ability Ability, w *world, c *Confinement) {
		var apply []use
		var scripts []string
		for _, u := range uses {
			repository := exists(filepath.Join(w.ws, ".git")) || !strings.Contains(u.script, ".git")
			if !u.write && repository && (ability.Mounts || !u.mounts) && u.missing(t, a) == "" {
				apply, scripts = append(apply, u), append(scripts, "set -e\n"+u.script)
			}
		}
		for i, code := range a.runAll(t, w, c, scripts, uid) {
			if code != 0 {
				_, out := a.run(t, w, c, "", scripts[i], uid)
				t.Errorf("%s, %s: exit %d; again: %s", apply[i].name, name, code, out)
			}
		}
	}
	for _, in := range []prison{
		{"workspace-write", best, onlyWorkspace(), true},
		{"read-only", best, readOnly, true},
		{"read-only without mounts", noMounts, readOnly, false},
	} {
		w := newWorld(t)
		check(in.name, in.ability, w, in.confinement(t, w))
	}
	w, c := withoutRepository(t, noMounts)
	check("workspace-write without mounts and repository", noMounts, w, c)
}

// TestReadOnlyWritesNothing also has no place for temporary files.
func TestReadOnlyWritesNothing(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	w := newWorld(t)
	c := w.confinement(t, ability, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, WritableRoots: []string{w.ws}})
	_, out := a.run(t, w, c, "", `for d in . sub /tmp $HOME /dev/shm /var/tmp; do
		if echo x 2>/dev/null > $d/escape.$$; then echo wrote $d; rm $d/escape.$$; fi; done; echo x > file; cat file`)
	if !strings.HasSuffix(out, "inside\n") || strings.Contains(out, "wrote") {
		t.Errorf("output %q", out)
	}
}

// TestTemporaryFiles has them where the policy says.
func TestTemporaryFiles(t *testing.T) {
	a := newAgent(t)
	canConfine(t)
	tmp := newDir(t)
	t.Setenv("TMPDIR", tmp)
	for _, c := range []struct {
		noSlash, noVariable bool
		want                string
	}{
		{false, false, "/tmp TMPDIR"},
		{true, false, "TMPDIR"},
		{true, true, ""},
	} {
		w := newWorld(t)
		policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: c.noSlash, ExcludeTmpdirEnvVar: c.noVariable}
		_, out := a.run(t, w, w.confinement(t, Probe(), policy), "", `
			f=$(mktemp /tmp/sbXXXXXX 2>/dev/null) && rm $f && echo /tmp
			f=$(mktemp $TMPDIR/XXXXXX 2>/dev/null) && rm $f && echo TMPDIR`, "TMPDIR="+tmp)
		if got := strings.Join(strings.Fields(out), " "); got != c.want {
			t.Errorf("%+v: can write %q, want %q", c, got, c.want)
		}
	}
}

// TestGoBuild compiles with its caches among the temporary files.
func TestGoBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles and links")
	}
	needs(t, "go")
	a := newAgent(t)
	w := newWorld(t)
	t.Setenv("TMPDIR", w.outside)
	// Its cache is the one that there is, or it would compile the runtime library first.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	c := w.confinement(t, canConfine(t), protocol.SandboxPolicy{
		Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, WritableRoots: []string{strings.TrimSpace(string(cache))},
	})
	r, out := a.run(t, w, c, "", `echo module x > go.mod; printf 'package main\nfunc main() { println("built") } // in %s\n' "$PWD" > main.go; go build -buildvcs=false -o x . && ./x`,
		"TMPDIR="+w.outside, "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
	if r.ExitCode != 0 || out != "built\n" {
		t.Errorf("exit %d: %s", r.ExitCode, out)
	}
}

// TestNetworkAccess has the network, and all else is confined.
func TestNetworkAccess(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	policy := onlyWorkspace()
	policy.NetworkAccess = true
	w := newWorld(t)
	c := w.confinement(t, ability, policy)
	before := w.snapshot(t)
	_, out := a.run(t, w, c, "", `
		t dial tcp $TCP && echo tcp; t dial udp $UDP && echo udp; t dns $UDP && echo dns; t listen tcp 127.0.0.1:0 && echo listen
		t socket `+itoa(unix.AF_NETLINK)+` && echo netlink; t dial unix $SOCKET 2>&1 | grep -q "permission denied" && echo no unix
		exec 2>/dev/null
		t dial unix $ABSTRACT && echo abstract; t socket `+itoa(unix.AF_VSOCK)+` && echo vsock; t socket `+itoa(unix.AF_PACKET)+` && echo packet
		echo x > $OUT/file; echo x > .git/config; kill -CONT $AGENT && echo signal`)
	if want := "tcp\nudp\ndns\nlisten\nnetlink\nno unix\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if w.snapshot(t) != before {
		t.Error("something outside has changed")
	}
}

// TestPty has a command with a terminal.
func TestPty(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		_, out := a.runSpec(t, w.confinement(t, ability, onlyWorkspace()), proc.Spec{
			Argv: []string{"sh", "-c", `stty size; echo to tty > /dev/tty; echo out > /dev/stdout; stty -echo && stty echo && test -t 0 && test -t 1 && echo terminal`},
			Dir:  w.ws, Env: a.env, Pty: &proc.Winsize{Rows: 12, Cols: 34},
		})
		if want := "12 34\r\nto tty\r\nout\r\nterminal\r\n"; out != want {
			t.Errorf("mounts %q: output %q, want %q", ability.mounts(), out, want)
		}
	}
}

// TestDaemonIsEnded leaves a confined daemon behind, which the shim must still be
// able to kill.
func TestDaemonIsEnded(t *testing.T) {
	if self := strconv.Itoa(os.Getpid()); !runs(self, os.Args[0]) {
		t.Fatalf("runs does not see process %s", self)
	}
	a := newAgent(t)
	ability := canConfine(t)
	for _, policy := range []protocol.SandboxPolicy{onlyWorkspace(), {Mode: protocol.SandboxReadOnly}, {Mode: protocol.SandboxFullAccess}} {
		w := newWorld(t)
		r, out := a.run(t, w, w.confinement(t, ability, policy), "",
			`{ (setsid sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 1; done' `+w.ws+` &) } | { read p; echo $p; }`)
		pid := strings.TrimSpace(out)
		if r.Killed == 0 || pid == "" || runs(pid, w.ws) {
			t.Errorf("%s: daemon %q, result %+v", policy.Mode, pid, r)
		}
	}
}

// runs reports whether a process that was started with the argument runs. Its number
// alone would not tell: where others fork fast, another process soon has it. One that
// was killed and not yet waited for has no arguments any more.
func runs(pid, arg string) bool {
	line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	return slices.Contains(strings.Split(string(line), "\x00"), arg)
}

// TestInPIDNamespace combines both.
func TestInPIDNamespace(t *testing.T) {
	ability := canConfine(t)
	if !proc.PIDNamespaces() {
		t.Skip("no PID namespace here")
	}
	a, w := newAgent(t), newWorld(t)
	c := w.confinement(t, ability, onlyWorkspace())
	before := w.snapshot(t)
	_, out := a.run(t, w, c, "", `echo x > file && echo inside; echo $PPID
		exec 2>/dev/null
		echo x > $OUT/file; echo x > .git/hooks/new; t userns && echo namespace; t dial tcp $TCP && echo tcp; kill -9 1; test -d /proc/$$ && echo proc`)
	if want := "inside\n1\nproc\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if w.snapshot(t) != before {
		t.Error("something outside has changed")
	}
}

// TestFermataInside runs a fermata in the sandbox of another one: no namespaces,
// but the rest works, and commands are confined to what both allow.
func TestFermataInside(t *testing.T) {
	a := newAgent(t)
	w := newWorld(t)
	script := `echo x > $WS/sub/new && echo sub; echo x > $WS/file && echo file; echo x > $OUT/file && echo outside; kill -CONT $PPID && echo shim`
	_, out := a.run(t, w, w.confinement(t, canConfine(t), onlyWorkspace()), "", `t agent $WS/sub "$SCRIPT" 2>&1`, "SCRIPT=exec 2>/dev/null; "+script)
	if want := "sub\nexit 1 <nil> mounts false\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if text, err := os.ReadFile(filepath.Join(w.ws, "file")); err != nil || string(text) != "inside\n" {
		t.Errorf("the inner sandbox does not hold: %q, %v", text, err)
	}
}

// TestRights looks at what is left of them.
func TestRights(t *testing.T) {
	const kept = "00000000000004fb"
	want := map[string]string{"CapInh:": noRights, "CapAmb:": noRights, "CapPrm:": noRights, "CapEff:": noRights, "NoNewPrivs:": "1", "Seccomp:": "2"}
	if os.Getuid() == 0 {
		want["CapPrm:"], want["CapEff:"], want["CapBnd:"] = kept, kept, kept
	}
	if os.Getenv(boundVariable) != "" {
		delete(want, "CapBnd:")
	}

	a := newAgent(t)
	w := newWorld(t)
	_, out := a.run(t, w, w.confinement(t, canConfine(t), onlyWorkspace()), "", `grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status`)
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if value, ok := want[f[0]]; ok && value != f[1] {
			t.Errorf("%s is %s, want %s", f[0], f[1], value)
		}
		delete(want, f[0])
	}
	if len(want) > 0 {
		t.Errorf("missing %v in %q", want, out)
	}
}

var noRights = strings.Repeat("0", 16)

// boundVariable says that the bound of rights cannot be lowered.
const boundVariable = "FERMATA_SANDBOX_BOUND"

// TestRightsWithoutBounds is a root who may not lower the bound of rights, as in
// some containers.
func TestRightsWithoutBounds(t *testing.T) {
	canConfine(t)
	needs(t, "setpriv")
	if os.Getuid() != 0 {
		t.Skip("for root only")
	}
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "setpriv", "--bounding-set", "-setpcap", exe, "-test.run=^TestRights$", "-test.v")
	cmd.Env = append(os.Environ(), boundVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestRights") {
		t.Errorf("%v\n%s", err, out)
	}
}
