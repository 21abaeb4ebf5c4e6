//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/secrets"
	"golang.org/x/sys/unix"
)

// A connection that is on its way when the server is registered does not come about: who listened at the port may have
// been another program until then.
func TestServerThatIsRegisteredMeanwhile(t *testing.T) {
	home := secrets.Home(newDir(t))
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(l)
	must(t, unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(l, 0)) // has room for one connection
	at, err := unix.Getsockname(l)
	must(t, err)
	port := at.(*unix.SockaddrInet4).Port
	first, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	must(t, err)
	defer first.Close()

	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	done := make(chan error, 1)
	go func() {
		s := socketServer{homes: []path{path(home)}}
		done <- s.connectOther(fd, rawInternet(net.IP{127, 0, 0, 1}, uint16(port)))
	}()
	const synSent = 2
	for {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		must(t, err)
		if info.State == synSent {
			break
		}
		if len(done) > 0 {
			t.Fatalf("it did not wait for room: %v", <-done)
		}
		runtime.Gosched()
	}
	forget, err := home.Listen(secrets.Address{Port: uint16(port)})
	must(t, err)
	defer forget()
	conn, _, err := unix.Accept(l) // makes room
	must(t, err)
	defer unix.Close(conn)
	if err := <-done; !errors.Is(err, unix.EACCES) {
		t.Errorf("connected: %v", err)
	}
	if n, err := unix.Write(fd, []byte("x")); err == nil {
		t.Errorf("%d bytes could be sent", n)
	}
}

// The kernel says which process listens at the other end of a connection, whatever was found out before it was made.
func TestPeerIsOurs(t *testing.T) {
	dir := newDir(t)
	ours, others := filepath.Join(dir, "ours"), filepath.Join(dir, "others")
	l, err := net.Listen("unix", ours)
	must(t, err)
	defer l.Close()
	exe, err := os.Executable()
	must(t, err)
	for _, args := range [][]string{{"serve", "stream", others}, {"wait", others}} {
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Env = append(os.Environ(), toolVariable+"=local")
		must(t, cmd.Start())
		if args[0] == "wait" {
			must(t, cmd.Wait())
			continue
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	for name, want := range map[string]bool{ours: true, others: false} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Connect(fd, address(name)))
		if got := peerIsOurs(fd); got != want {
			t.Errorf("%s: %t", filepath.Base(name), got)
		}
		must(t, unix.Close(fd))
	}
}

// mountedVariable says that the test has mounts of its own.
const mountedVariable = "FERMATA_SANDBOX_MOUNTED"

// A secret cannot be read at another place where its directory is mounted.
func TestSecretsUnderOtherMounts(t *testing.T) {
	ability := canConfine(t)
	if os.Getenv(mountedVariable) == "" {
		if os.Getuid() != 0 {
			t.Skip("only root can mount something")
		}
		needs(t, "unshare")
		exe, err := os.Executable()
		must(t, err)
		cmd := exec.CommandContext(t.Context(), "unshare", "-m", exe, "-test.run=^TestSecretsUnderOtherMounts$", "-test.v")
		cmd.Env = append(os.Environ(), mountedVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSecretsUnderOtherMounts") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	a, w := newAgent(t), newWorld(t)
	token, other := filepath.Join(w.outside, "token"), filepath.Join(w.ws, "sub")
	must(t, os.WriteFile(token, []byte("sesame\n"), 0o600))
	must(t, unix.Mount(w.outside, other, "", unix.MS_BIND, ""))
	defer unix.Unmount(other, unix.MNT_DETACH)
	if _, out := a.run(t, w, w.confinement(t, ability, onlyWorkspace()), "", "cat sub/token"); out != "sesame\n" {
		t.Fatalf("before it is registered: %q", out)
	}
	must(t, secrets.Home(w.home).Register(token))
	if _, out := a.run(t, w, w.confinement(t, ability, onlyWorkspace()), "", "cat sub/token $OUT/token"); strings.Contains(out, "sesame") {
		t.Errorf("read: %q", out)
	}
}
