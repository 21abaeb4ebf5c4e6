//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/fermata-agent/fermata/internal/secrets"
	"golang.org/x/sys/unix"
)

// serverAttacks try to reach the server of fermata at $PORT.
var serverAttacks = []struct{ name, script string }{
	{"loopback", `t dial tcp 127.0.0.1:$PORT`},
	{"another loopback address", `t dial tcp 127.77.0.1:$PORT`},
	{"no address", `t dial tcp 0.0.0.0:$PORT`},
	{"loopback of IPv6", `t dial tcp [::1]:$PORT`},
	{"no address of IPv6", `t dial tcp [::]:$PORT`},
	{"IPv4 in IPv6", `t raw6 ::ffff:127.0.0.1 $PORT`},
	{"no address of IPv4 in IPv6", `t raw6 ::ffff:0.0.0.0 $PORT`},
	{"the address of this machine", `t dial tcp $MACHINE:$PORT`},
	{"sendto", `t fastopen sendto $PORT`},
	{"sendmsg", `t fastopen sendmsg $PORT`},
	{"sendmmsg", `t fastopen sendmmsg $PORT`},
	{"when something is sent", `t fastopen setsockopt $PORT`},
	{"a bound socket", `t bound $PORT`},
}

// A command with network access does not reach what fermata serves, under any address of this
// machine, and reaches it under all of them while it is not registered: else this would prove nothing.
func TestServersAreOutOfReach(t *testing.T) {
	a := newAgent(t)
	ability := canConfine(t)
	if !ability.Sockets {
		t.Skip("calls cannot be served here")
	}
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	defer l.Close()
	var accepted atomic.Int64
	go func() { // ends with l
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conn.Close()
		}
	}()
	at, _ := l.Addr().(*net.TCPAddr)
	w := newWorld(t)
	policy := onlyWorkspace()
	policy.NetworkAccess = true
	var scripts []string
	for _, attack := range serverAttacks {
		scripts = append(scripts, attack.script)
	}
	env := []string{"PORT=" + strconv.Itoa(at.Port), "MACHINE=" + ownAddress(t)}
	free := a.runAll(t, w, nil, scripts, env...)
	confined := a.runAll(t, w, w.confinement(t, ability, policy), scripts, env...)
	c := w.confinement(t, ability, policy) // made before anything is registered
	forget, err := secrets.Home(w.home).Listen(secrets.Address{Port: uint16(at.Port)})
	must(t, err)
	served := func() int64 { // how many were accepted, when all that connected before were
		conn, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		_, _ = conn.Read(make([]byte, 1))
		conn.Close()
		return accepted.Load()
	}
	before := served()
	for i, code := range a.runAll(t, w, c, scripts, env...) {
		if code <= 0 {
			t.Errorf("%s: reached (exit %d)", serverAttacks[i].name, code)
		}
		if free[i] != 0 {
			t.Logf("%s: does not work without the sandbox either (exit %d)", serverAttacks[i].name, free[i])
		}
		if i < 8 && confined[i] != free[i] {
			t.Errorf("%s: a server that is not registered was not reached (exit %d)", serverAttacks[i].name, confined[i])
		}
	}
	if n := served() - before - 1; n != 0 {
		t.Errorf("the server noticed %d connections", n)
	}
	if free[0] != 0 || free[8] != 0 || confined[0] != 0 {
		t.Errorf("the attacks prove nothing: without the sandbox %v, without registration %v", free, confined)
	}
	if _, out := a.run(t, w, c, "", "t dial tcp $TCP && t dial udp 127.0.0.1:$PORT && echo others", env...); out != "others\n" {
		t.Errorf("other servers, and another protocol: %q", out)
	}
	forget()
	if _, out := a.run(t, w, c, "", "t dial tcp 127.0.0.1:$PORT && echo forgotten", env...); out != "forgotten\n" {
		t.Errorf("after the server has ended: %q", out)
	}
}

// What another machine serves is refused by its address, and not by its port alone.
func TestRegisteredAddresses(t *testing.T) {
	home := secrets.Home(newDir(t))
	far := []byte{192, 0, 2, 1}
	for _, a := range []secrets.Address{{IP: far, Port: 4222}, {IP: []byte{127, 0, 0, 1}, Port: 5222}, {Port: 6222}} {
		_, err := home.Listen(a)
		must(t, err)
	}
	s := socketServer{homes: []path{path(home)}}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	for _, c := range []struct {
		ip   string
		port uint16
		want bool
	}{
		{"192.0.2.1", 4222, true},
		{"::ffff:192.0.2.1", 4222, true},
		{"192.0.2.1", 4223, false},
		{"192.0.2.2", 4222, false},
		{"127.0.0.1", 4222, false},
		{"127.0.0.1", 5222, true},
		{"0.0.0.0", 5222, true},
		{"::1", 5222, true},
		{"192.0.2.1", 5222, false},
		{"::1", 6222, true},
		{"192.0.2.1", 6222, false},
	} {
		ip := net.ParseIP(c.ip)
		if !strings.Contains(c.ip, ":") {
			ip = ip.To4()
		}
		if got := s.refuses(fd, rawInternet(ip, c.port)); got != c.want {
			t.Errorf("%s port %d: refused %t, want %t", c.ip, c.port, got, c.want)
		}
	}
	for _, short := range [][]byte{nil, {2}, {2, 0, 0x10, 0x7e, 192, 0, 2}, {10, 0, 0x10, 0x7e, 0, 0, 0, 0, 1}} {
		if s.refuses(fd, short) {
			t.Errorf("%v is no address", short)
		}
	}
}

// rawInternet is an address as the kernel has it.
func rawInternet(ip net.IP, port uint16) []byte {
	if len(ip) == net.IPv4len {
		b := binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), port)
		return append(append(b, ip...), make([]byte, 8)...)
	}
	b := binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), port)
	return append(append(append(b, 0, 0, 0, 0), ip...), 0, 0, 0, 0)
}

// ownAddress is one of this machine that is not loopback, if there is one.
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// A file that any process of the home has registered cannot be read, written or replaced, under its
// name, behind a link and after it was renamed, in the workspace and outside.
func TestRegisteredFilesAreOutOfReach(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		must(t, os.WriteFile(filepath.Join(w.ws, "sub", "token"), []byte("sesame\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(w.outside, "key.pem"), []byte("sesame\n"), 0o600))
		must(t, os.Symlink("key.pem", filepath.Join(w.outside, "link.pem")))
		attack := `exec 2>/dev/null; cat sub/token $OUT/key.pem $OUT/link.pem /proc/self/cwd/sub/token; cp sub/token copy; cat copy
			ln sub/token sub/other; cat sub/other; mv sub/token sub/moved; cat sub/moved; mv sub dir && cat dir/token
			echo evil > sub/token; echo evil > new; mv new sub/token; rm -f sub/token; cat file`
		c := w.confinement(t, ability, onlyWorkspace())
		if _, out := a.run(t, w, c, "", "cat sub/token"); out != "sesame\n" {
			t.Fatalf("before it is registered: %q", out)
		}
		for _, name := range []string{filepath.Join(w.ws, "sub", "token"), filepath.Join(w.outside, "link.pem")} {
			if text, err := secrets.Home(w.home).Read(name); err != nil || string(text) != "sesame\n" {
				t.Fatalf("%q, %v", text, err)
			}
		}
		_, out := a.run(t, w, w.confinement(t, ability, onlyWorkspace()), "", attack)
		if out != "inside\n" {
			t.Errorf("mounts %t: %q", ability.Mounts, out)
		}
		if text, err := os.ReadFile(filepath.Join(w.ws, "sub", "token")); err != nil || string(text) != "sesame\n" {
			t.Errorf("mounts %t: the token is now %q, %v", ability.Mounts, text, err)
		}
	}
}

// Tools do not read a hard link to a secret, and people are warned that commands can.
func TestHardLinksToSecrets(t *testing.T) {
	w := newWorld(t)
	token := filepath.Join(w.outside, "token")
	must(t, os.WriteFile(token, []byte("sesame\n"), 0o600))
	must(t, secrets.Home(w.home).Register(token))
	if c := w.confinement(t, canConfine(t), onlyWorkspace()); len(c.Notes()) != 0 {
		t.Errorf("notes %q", c.Notes())
	}
	must(t, os.Link(token, filepath.Join(w.ws, "other")))
	if !OffLimits([]string{w.home}, filepath.Join(w.ws, "other")) {
		t.Error("tools may read a hard link")
	}
	if c := w.confinement(t, canConfine(t), onlyWorkspace()); len(c.Notes()) != 1 {
		t.Errorf("notes %q", c.Notes())
	}
}

// The tools for attacks over the Internet.
func init() {
	tools["raw6"] = raw6Tool
	tools["fastopen"] = fastopenTool
	tools["bound"] = boundTool
}

// raw6Tool connects a socket of IPv6 to an address that is written in its form.
func raw6Tool(args []string) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet6{Port: port, Addr: [16]byte(net.ParseIP(args[0]).To16())})
}

// fastopenTool connects by sending something.
func fastopenTool(args []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	switch args[0] {
	case "sendto":
		return unix.Sendto(fd, []byte("hello"), unix.MSG_FASTOPEN, to)
	case "sendmsg":
		return unix.Sendmsg(fd, []byte("hello"), nil, to, unix.MSG_FASTOPEN)
	case "sendmmsg":
		return sendmmsg(fd, rawInternet(to.Addr[:], uint16(port)))
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("hello"))
	return err
}

func sendmmsg(fd int, to []byte) error {
	text := []byte("hello")
	vec := unix.Iovec{Base: &text[0]}
	vec.SetLen(len(text))
	message := struct {
		unix.Msghdr
		length uint32
		_      uint32
	}{Msghdr: unix.Msghdr{Name: &to[0], Namelen: uint32(len(to)), Iov: &vec}}
	message.SetIovlen(1)
	_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 1, unix.MSG_FASTOPEN, 0, 0)
	return errnoOrNil(errno)
}

// boundTool connects from another address of this machine.
func boundTool(args []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 9}}); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 3}})
}
