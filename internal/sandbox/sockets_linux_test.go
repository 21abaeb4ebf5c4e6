package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox/sockdiag"
	"github.com/fermata-agent/fermata/protocol"
	"golang.org/x/sys/unix"
)

// socketAttacks try to reach a socket of another process, which lies in $DIR/s,
// where the command can write.
var socketAttacks = []struct{ name, script string }{
	{"by its name", `t dial unix $DIR/s`},
	{"renamed", `mv $DIR/s $DIR/t && t dial unix $DIR/t`},
	{"linked", `ln $DIR/s $DIR/l && t dial unix $DIR/l`},
	{"linked into the workspace", `ln $DIR/s $WS/l && t dial unix $WS/l`},
	{"behind a link", `ln -s $DIR/s $WS/s && t dial unix $WS/s`},
	{"by a relative name", `cd $DIR && t dial unix s`},
	{"through the working directory of another process", `cd $DIR && sleep 100 & cd /; t dial unix /proc/$!/cwd/s`},
	{"through an open directory", `exec 7<$DIR; t dial unix /proc/self/fd/7/s`},
	{"through the root", `t dial unix /proc/self/root$DIR/s`},
	{"in a directory that was moved", `mkdir $DIR/d && mv $DIR/s $DIR/d/s && mv $DIR/d $DIR/e && t dial unix $DIR/e/s`},
	{"bound later", `touch $DIR/go || exit 1; i=0; while ! test -S $DIR/later && test $i -lt 2000; do i=$((i+1)); sleep 0.01; done; t dial unix $DIR/later`},
	{"abstract", `t dial unix $ABSTRACT`},
	{"of the internet's socket", `t dial unix $SOCKET`},
	{"with packets", `t local dial seqpacket $DIR/q`},
	{"by datagrams", `t dial unixgram $DGRAM`},
	{"by a pair's datagrams", `t pairsend $DGRAM`},
	{"by swapping the address", `t flip $DIR/s $FLIPS`},
	{"by a name in place of its own", `touch $DIR/go || exit 1; t local serve stream $DIR/own & t local wait $DIR/own; mv $DIR/s $DIR/own; t dial unix $DIR/own`},
}

// TestNoSocketsOfOthers tries all of them in each mode and configuration, of which a plain run has some, and with
// full access, where each must work: else it would prove nothing.
func TestNoSocketsOfOthers(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	writing := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
	networked := writing
	networked.NetworkAccess = true
	all := []prison{
		{"workspace-write without a PID namespace", best, writing, false},
		{"with the network, without mounts", noMounts, networked, false},
		{"read-only", best, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, true},

		{"workspace-write", best, writing, true},
		{"workspace-write without mounts", noMounts, writing, false},
		{"with the network", best, networked, true},
	}
	for _, in := range all[:longtest.Default(len(all), 3)] {
		t.Run(in.name, func(t *testing.T) { a.attackSockets(t, in) })
	}
	for i, attack := range socketAttacks {
		t.Run("full access/"+attack.name, func(t *testing.T) {
			if !inPart(i, 6) {
				t.Skip(longtest.ErrOff)
			}
			w := newWorld(t)
			t.Setenv("TMPDIR", w.outside)
			reached := a.lure(t, w.outside)
			worked := false
			var out string
			for tries := 0; !worked && tries < 20; tries++ { // some need luck
				var r proc.Result
				r, out = a.run(t, w, nil, "", attack.script, "DIR="+w.outside)
				worked = r.ExitCode == 0 || reached()
			}
			if !worked {
				t.Errorf("did not work (%s)", out)
			}
		})
	}
}

// attackSockets tries all attacks one after the other in one command, each with a directory of its own.
func (a *agent) attackSockets(t *testing.T, in prison) {
	t.Helper()
	w := newWorld(t)
	t.Setenv("TMPDIR", w.outside)
	var scripts []string
	var reached []func() bool
	for i, attack := range socketAttacks {
		dir := filepath.Join(w.outside, itoa(i))
		must(t, os.Mkdir(dir, 0o755))
		reached = append(reached, a.lure(t, dir))
		scripts = append(scripts, "rm -f $WS/l $WS/s; DIR="+dir+"\n"+attack.script)
	}
	for i, code := range a.runAll(t, w, in.confinement(t, w), scripts) {
		if code <= 0 || reached[i]() {
			t.Errorf("%s: worked (exit %d)", socketAttacks[i].name, code)
		}
	}
}

// lure listens at the places that the attacks try. reached reports whether
// somebody sent something there.
func (a *agent) lure(t *testing.T, dir string) (reached func() bool) {
	t.Helper()
	got := make(chan struct{}, 64)
	serve := func(l net.Listener) {
		t.Cleanup(func() { _ = l.Close() })
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if n, _ := conn.Read(make([]byte, 16)); n > 0 {
					select {
					case got <- struct{}{}:
					default:
					}
				}
			}()
		}
	}
	for network, name := range map[string]string{"unix": "s", "unixpacket": "q"} {
		l, err := net.Listen(network, filepath.Join(dir, name))
		must(t, err)
		go serve(l)
	}
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
			}
			if _, err := os.Stat(filepath.Join(dir, "go")); err != nil {
				continue
			}
			if l, err := net.Listen("unix", filepath.Join(dir, "later")); err == nil {
				serve(l)
			}
			return
		}
	}()
	return func() bool { return len(got) > 0 }
}

// ownSockets is what the processes of one command do among themselves.
var ownSockets = []struct{ name, script string }{
	{"stream", `t local serve stream $WS/sub/a & t local wait $WS/sub/a && t local dial stream $WS/sub/a && wait`},
	{"packets", `t local serve seqpacket $WS/sub/b & t local wait $WS/sub/b && t local dial seqpacket $WS/sub/b && wait`},
	{"relative", `cd sub; t local serve stream c & t local wait c && t local dial stream c && wait`},
	{"abstract", `t local serve stream @own-$$ & t local dial stream @own-$$ && wait`},
	{"through a link", `ln -s $WS/sub $WS/link; t local serve stream $WS/link/d & t local wait $WS/sub/d && t local dial stream $WS/link/d && wait`},
	{"renamed", `t local serve stream $WS/sub/e & t local wait $WS/sub/e && mv $WS/sub/e $WS/sub/f && t local dial stream $WS/sub/f && wait`},
	{"in /dev/shm", `t local serve stream /dev/shm/g & t local wait /dev/shm/g && t local dial stream /dev/shm/g && wait`},
	{"by a server whose starter is gone", `( t local serve stream $WS/sub/h & ); t local wait $WS/sub/h && t local dial stream $WS/sub/h`},
	{"that does not block", `t local serve stream $WS/sub/i & t local wait $WS/sub/i && t local dial nonblock $WS/sub/i && wait`},
	{"by threads", `t local threads stream $WS/sub/j`},
	{"that is full", `t local full stream $WS/sub/k`},
	{"one that nobody serves", `t local serve stream $WS/sub/l & t local wait $WS/sub/l && t local dial stream $WS/sub/l && wait; ! t local dial stream $WS/sub/l`},
}

// TestOwnSockets has honest programs, with and without the network.
func TestOwnSockets(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	networked := onlyWorkspace()
	networked.NetworkAccess = true
	all := []prison{
		{"all there is", best, onlyWorkspace(), true},
		{"with the network, without a PID namespace", best, networked, false},
		{"without mounts", noMounts, onlyWorkspace(), false},

		{"without a PID namespace", best, onlyWorkspace(), false},
		{"with the network", best, networked, true},
		{"with the network, without mounts", noMounts, networked, false},
	}
	for _, in := range all[:longtest.Default(len(all), 3)] {
		w := newWorld(t)
		must(t, os.RemoveAll(filepath.Join(w.ws, ".git"))) // or nothing could be made at the top
		must(t, os.RemoveAll(w.home))
		w.home = ""
		box := in.confinement(t, w)
		var scripts []string
		for _, own := range ownSockets {
			if !in.ability.Mounts && strings.Contains(own.script, "/dev/shm") {
				own.script = ":" // it is everybody's then
			}
			scripts = append(scripts, own.script)
		}
		for i, code := range a.runAll(t, w, box, scripts) {
			if code != 0 {
				_, out := a.run(t, w, box, "", scripts[i])
				t.Errorf("%s, %s: exit %d; again: %s", ownSockets[i].name, in.name, code, out)
			}
		}
	}
}

// TestNoLocalSockets is on a kernel on which calls cannot be served: then there
// are none, instead of all.
func TestNoLocalSockets(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	ability.Sockets = false
	w := newWorld(t)
	c := w.confinement(t, ability, onlyWorkspace())
	_, out := a.run(t, w, c, "", `exec 2>/dev/null; t socketpair && echo pair; t dial unix $SOCKET && echo outside; t unix $WS/sub/s && echo own; :`)
	if out != "pair\n" {
		t.Errorf("output %q, want pairs alone", out)
	}
	if notes := strings.Join(c.Notes(), "\n"); !strings.Contains(notes, "local sockets") {
		t.Errorf("notes %q do not say so", notes)
	}
}

// A program that listens does not notice that a command tried to connect to it: not even a connection that is
// closed at once.
func TestOthersNoticeNothing(t *testing.T) {
	if _, err := sockdiag.Listeners(); err != nil {
		t.Skip(err) // then they do
	}
	a := newAgent(t)
	ability := canConfine(t)
	if !ability.Sockets {
		t.Skip("calls cannot be served here")
	}
	w := newWorld(t)
	abstract := fmt.Sprintf("@fermata-notice-%d", os.Getpid())
	var tried []func() bool
	for _, name := range []string{filepath.Join(w.outside, "s"), abstract} {
		l, err := net.Listen("unix", name)
		must(t, err)
		defer l.Close()
		tried = append(tried, func() bool { return hasConnection(t, l) })
	}
	const script = `t dial unix $OUT/s; ln -s $OUT/s link; t dial unix link; t dial unix $NAME; echo over`
	c := w.confinement(t, ability, onlyWorkspace())
	if _, out := a.run(t, w, c, "", script, "NAME="+abstract); !strings.Contains(out, "over") {
		t.Fatal(out)
	}
	for i, noticed := range tried {
		if noticed() {
			t.Errorf("listener %d was connected to", i)
		}
	}
	if _, out := a.run(t, w, nil, "", script, "NAME="+abstract); !tried[0]() || !tried[1]() {
		t.Errorf("without the sandbox nothing is noticed either: %s", out)
	}
}

// hasConnection reports whether a connection waits to be accepted, and accepts it.
func hasConnection(t *testing.T, l net.Listener) bool {
	t.Helper()
	conn, err := l.(*net.UnixListener).SyscallConn()
	must(t, err)
	fd := -1
	must(t, conn.Control(func(listener uintptr) { fd, _, err = unix.Accept4(int(listener), unix.SOCK_CLOEXEC) }))
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
