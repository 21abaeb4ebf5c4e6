package sandbox

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestBoundSockets(t *testing.T) {
	table := `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20000 /run/a b/ socket
0000000000000000: 00000002 00000000 00010000 0001 01   300 /run/b
0000000000000000: 00000003 00000000 00000000 0001 03 40001 /run/b
0000000000000000: 00000003 00000000 00000000 0001 03 40002
0000000000000000: 00000002 00000000 00010000 0001 01 40003 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 40004 relative
`
	if d := cmp.Diff([]string{"/run/a b/ socket", "/run/b"}, boundSockets([]byte(table))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCoversHold has the agent's socket in a directory that the command can write:
// it must not get at it by moving things. Its own sockets work there.
func TestCoversHold(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	w := newWorld(t)
	socket := filepath.Join(w.outside, "s")
	a.listen(t, "unix", socket)
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	t.Setenv("TMPDIR", w.outside)
	r, out := a.run(t, w, w.confinement(t, ability, policy), "", `exec 2>/dev/null
		t unix $OUT/own && echo own
		t dial unix $OUT/s && echo agent
		mv $OUT/s $OUT/t && echo moved; rm $OUT/s && echo removed
		mv $OUT ${OUT}2 && t dial unix ${OUT}2/s && echo moved agent
		ln ${OUT}2/s $WS/l && t dial unix $WS/l && echo linked agent; :`)
	if want := "own\n"; out != want || r.ExitCode != 0 {
		t.Errorf("result %+v, output %q, want %q", r, out, want)
	}
}

// TestSocketsOfTheUser has one in the workspace, where commands may talk to each
// other.
func TestSocketsOfTheUser(t *testing.T) {
	a := newAgent(t)
	w := newWorld(t)
	a.listen(t, "unix", filepath.Join(w.ws, "s"))
	if r, out := a.run(t, w, w.confinement(t, canConfine(t), onlyWorkspace()), "", `t dial unix $WS/s`); r.ExitCode != 0 {
		t.Errorf("result %+v, output %q", r, out)
	}
}

// TestGivenSocket hands a socket of the network to the command, which must not be
// able to use it.
func TestGivenSocket(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	w := newWorld(t)
	l, err := net.Listen("unix", filepath.Join(w.ws, "s"))
	must(t, err)
	defer l.Close()
	go giveSockets(l)
	script := `t given $WS/s ${TCP#*:}`
	if r, out := a.run(t, w, nil, "", script); r.ExitCode != 0 {
		t.Errorf("full access: exit %d, %s", r.ExitCode, out)
	}
	if r, out := a.run(t, w, w.confinement(t, ability, onlyWorkspace()), "", script); r.ExitCode == 0 || !strings.Contains(out, "permission denied") {
		t.Errorf("confined: exit %d, %s", r.ExitCode, out)
	}
}

func giveSockets(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
			_ = unix.Close(fd)
		}
		_ = conn.Close()
	}
}
