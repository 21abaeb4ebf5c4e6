package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
)

func TestDenied(t *testing.T) {
	base := tree(t, "ws/.git/hooks/", "ws/file:", "out/file:", "fixed/")
	check(t, os.Chmod(filepath.Join(base, "fixed"), 0o500))
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true}
	c, err := newWith(strong, policy, Place{Cwd: base + "/ws"})
	check(t, err)
	policy.NetworkAccess = true
	networked, err := newWith(strong, policy, Place{Cwd: base + "/ws"})
	check(t, err)

	failed := proc.Result{ExitCode: 1}
	for _, k := range []struct {
		name   string
		c      *Confinement
		result proc.Result
		output string
		want   string
	}{
		{"a shell", c, failed, "sh: 1: cannot create $/out/x: Read-only file system\n", "writing $/out/x"},
		{"a shell with a path", c, failed, "/bin/bash: line 1: $/out/x: Read-only file system\n", "writing $/out/x"},
		{"a shell, relative", c, failed, "/bin/bash: line 12: .git: Read-only file system\n", "writing $/ws/.git"},
		{"a script", c, failed, "./file: 3: cannot create ../out/x: Permission denied\n", "writing $/out/x"},
		{"touch", c, failed, "touch: cannot touch '$/out/x': Read-only file system", "writing $/out/x"},
		{"touch of old", c, failed, "touch: cannot touch ‘$/out/x’: Read-only file system", "writing $/out/x"},
		{"relative", c, failed, "cp: cannot create regular file '../out/x': Permission denied", "writing $/out/x"},
		{"go", c, failed, "open $/out/file: read-only file system", "writing $/out/file"},
		{"python", c, failed, "OSError: [Errno 30] Read-only file system: '$/out/x'", "writing $/out/x"},
		{"node", c, failed, "Error: EROFS: read-only file system, open '$/out/x'", "writing $/out/x"},
		{"git", c, failed, "fatal: Unable to create '$/ws/.git/index.lock': Read-only file system", "writing $/ws/.git/index.lock"},
		{"mv", c, failed, "mv: cannot move '.git' to 'x': Device or resource busy", "writing $/ws/.git"},
		{"after other lines", c, failed, "one\ntwo\nmkdir: cannot create directory '$/out/x': Read-only file system\nthree\n", "writing $/out/x"},
		{"no file named", c, failed, "write failed: Read-only file system", "writing"},
		{"socket", c, failed, "socket: Operation not permitted", "socket"},
		{"python socket", c, failed, "  File \"/usr/lib/python3/socket.py\", line 1\nPermissionError: [Errno 1] Operation not permitted in socket", "socket"},
		{"curl", c, proc.Result{ExitCode: 6}, "curl: (6) Could not resolve host: example.com", "the network"},
		{"go net", c, failed, "dial tcp 127.0.0.1:80: socket: operation not permitted", "the network"},
		{"curl with network", networked, proc.Result{ExitCode: 6}, "curl: (6) Could not resolve host: example.com", ""},
		{"unshare", c, failed, "unshare: unshare failed: Operation not permitted", "unshare"},
		{"32 bits", c, proc.Result{ExitCode: -1, Signal: "SIGSYS"}, "", "a program of another architecture"},

		{"only a code", c, failed, "", ""},
		{"a code of shells", c, proc.Result{ExitCode: 126}, "something went wrong", ""},
		{"it went well", c, proc.Result{}, "touch: cannot touch '$/out/x': Read-only file system", ""},
		{"stopped", c, proc.Result{ExitCode: 1, Stopped: true}, "cannot create $/out/x: Read-only file system", ""},
		{"timed out", c, proc.Result{ExitCode: 1, TimedOut: true}, "cannot create $/out/x: Read-only file system", ""},
		{"killed", c, proc.Result{ExitCode: -1, Signal: "SIGKILL"}, "cannot create $/out/x: Read-only file system", ""},
		{"did not run", c, proc.Result{ExitCode: -1, Err: os.ErrNotExist}, "Read-only file system", ""},
		{"own rights inside", c, failed, "chown: changing ownership of '$/ws/file': Operation not permitted", ""},
		{"not executable", c, proc.Result{ExitCode: 126}, "sh: 1: ./file: Permission denied", ""},
		{"nobody could", c, failed, "touch: cannot touch '/proc/x': Permission denied", ""},
		{"really read-only", c, failed, "sh: cannot create /sys/kernel/x: Read-only file system", ""},
		{"text about it", c, failed, "expected: permission denied", ""},
		{"a missing file", c, failed, "cat: $/out/none: No such file or directory", ""},
	} {
		output := strings.ReplaceAll(k.output, "$", base)
		what, denied := k.c.Denied(Attempt{Dir: base + "/ws", Result: k.result, Output: output})
		if want := strings.ReplaceAll(k.want, "$", base); what != want || denied != (want != "") {
			t.Errorf("%s: got %q, want %q", k.name, what, want)
		}
	}
	if os.Getuid() != 0 {
		out := "touch: cannot touch '" + base + "/fixed/x': Permission denied"
		if what, denied := c.Denied(Attempt{Dir: base, Result: failed, Output: out}); denied {
			t.Errorf("what the user may not do counts: %q", what)
		}
	}
}

// TestDeniedForReal has real programs say it.
func TestDeniedForReal(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	cases := []struct{ script, want string }{
		{`echo x > $OUT/file`, "writing $/outside/file"},
		{`mkdir $OUT/new`, "writing $/outside/new"},
		{`rm -f $OUT/file`, "writing $/outside/file"},
		{`mv file $OUT/`, "writing $/outside/file"},
		{`echo x >> .git/config`, "writing $/ws/.git/config"},
		{`t dial tcp $TCP`, "the network"},
		{`t socket 16`, "socket"},
		{`false`, ""},
		{`cat /none`, ""},
		{`echo x > /proc/none`, ""},
		{`grep -r "Read-only file system" /dev/null`, ""},
		{`echo x > file; exit 3`, ""},
	}
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		c := w.confinement(t, ability, onlyWorkspace())
		for _, k := range cases {
			r, out := a.run(t, w, c, "", k.script)
			what, _ := c.Denied(Attempt{Dir: w.ws, Result: r, Output: out})
			if want := strings.ReplaceAll(k.want, "$", w.base); what != want {
				t.Errorf("mounts %q: %s: got %q, want %q, of %q", ability.mounts(), k.script, what, want, out)
			}
		}
	}
}
