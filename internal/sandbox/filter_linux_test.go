//go:build amd64 || arm64

package sandbox

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// call is what a filter sees of a system call.
type call struct {
	arch, nr uint32
	args     [6]uint64
}

func (c call) word(offset uint32) uint32 {
	switch {
	case offset == offsetNr:
		return c.nr
	case offset == offsetArch:
		return c.arch
	}
	return uint32(c.args[(offset-offsetArgs)/8] >> (8 * (offset % 8)))
}

// judge runs a filter as the kernel would.
func judge(t *testing.T, prog []unix.SockFilter, c call) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = c.word(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d: unknown code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestFilter(t *testing.T) {
	const high = 1 << 32 // garbage above what the kernel looks at
	for _, c := range []struct {
		name      string
		nr        uint32
		args      [6]uint64
		want      uint32
		networked uint32
	}{
		{"read", unix.SYS_READ, [6]uint64{}, actAllow, actAllow},
		{"exec", unix.SYS_EXECVE, [6]uint64{}, actAllow, actAllow},
		{"landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, [6]uint64{}, actAllow, actAllow},
		{"seccomp", unix.SYS_SECCOMP, [6]uint64{}, actAllow, actAllow},
		{"connect", unix.SYS_CONNECT, [6]uint64{}, actServe, actServe},
		{"listen", unix.SYS_LISTEN, [6]uint64{}, actServe, actServe},
		{"bind", unix.SYS_BIND, [6]uint64{}, actAllow, actAllow},
		{"local socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, actAllow, actAllow},
		{"local socket with flags", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}, actAllow, actAllow},
		{"local datagrams", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, actDeny, actDeny},
		{"local datagrams by another name", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, high | unix.SOCK_RAW | unix.SOCK_NONBLOCK}, actDeny, actDeny},
		{"local pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, actAllow, actAllow},
		{"local pair for datagrams", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, actDeny, actDeny},
		{"other pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_TIPC}, actDeny, actDeny},
		{"internet", unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, actDeny, actAllow},
		{"internet with garbage", unix.SYS_SOCKET, [6]uint64{high | unix.AF_INET}, actDeny, actAllow},
		{"internet in disguise", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX<<32 | unix.AF_INET}, actDeny, actAllow},
		{"internet 6", unix.SYS_SOCKET, [6]uint64{unix.AF_INET6}, actDeny, actAllow},
		{"netlink", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK}, actDeny, actAllow},
		{"packets", unix.SYS_SOCKET, [6]uint64{unix.AF_PACKET}, actDeny, actDeny},
		{"hypervisor", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}, actDeny, actDeny},
		{"crypto", unix.SYS_SOCKET, [6]uint64{unix.AF_ALG}, actDeny, actDeny},
		{"fork", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}, actAllow, actAllow},
		{"thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, actAllow, actAllow},
		{"user namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, actDeny, actDeny},
		{"net namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWNET}, actDeny, actDeny},
		{"clone3", unix.SYS_CLONE3, [6]uint64{}, actMissing, actMissing},
		{"unshare files", unix.SYS_UNSHARE, [6]uint64{unix.CLONE_FILES}, actAllow, actAllow},
		{"unshare mounts", unix.SYS_UNSHARE, [6]uint64{unix.CLONE_NEWNS}, actDeny, actDeny},
		{"unshare time", unix.SYS_UNSHARE, [6]uint64{unix.CLONE_NEWTIME}, actDeny, actDeny},
		{"own limit", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CORE, 1}, actAllow, actAllow},
		{"foreign limit", unix.SYS_PRLIMIT64, [6]uint64{1234, unix.RLIMIT_CPU, 1}, actDeny, actDeny},
		{"size of a terminal", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, actAllow, actAllow},
		{"typing", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, actDeny, actDeny},
		{"typing with garbage", unix.SYS_IOCTL, [6]uint64{0, high | unix.TIOCSTI}, actDeny, actDeny},
		{"pasting", unix.SYS_IOCTL, [6]uint64{0, tiocLinux}, actDeny, actDeny},
		{"the last call", lastCall, [6]uint64{}, actAllow, actAllow},
		{"a call of tomorrow", lastCall + 1, [6]uint64{}, actMissing, actMissing},
		{"x32", 0x40000000 | unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, actMissing, actMissing},
	} {
		for network, want := range map[bool]uint32{false: c.want, true: c.networked} {
			if got := judge(t, filterProgram(network, true), call{nativeArch, c.nr, c.args}); got != want {
				t.Errorf("%s, network %v: got %#x, want %#x", c.name, network, got, want)
			}
		}
	}
	for _, c := range []struct {
		name string
		nr   uint32
		args [6]uint64
		want uint32
	}{
		{"connect", unix.SYS_CONNECT, [6]uint64{}, actAllow},
		{"local socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, actDeny},
		{"local pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, actAllow},
		{"internet", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM}, actAllow},
	} {
		if got := judge(t, filterProgram(true, false), call{nativeArch, c.nr, c.args}); got != c.want {
			t.Errorf("%s, not served: got %#x, want %#x", c.name, got, c.want)
		}
	}
	if got := judge(t, filterProgram(true, true), call{unix.AUDIT_ARCH_I386, unix.SYS_READ, [6]uint64{}}); got != actKill {
		t.Errorf("foreign architecture: got %#x", got)
	}
}

// TestFilterLeavesOnlyConnect has the other ways to make a connection.
func TestFilterLeavesOnlyConnect(t *testing.T) {
	const high = 1 << 32 // garbage above what the kernel looks at
	for _, c := range []struct {
		name string
		nr   uint32
		args [6]uint64
		want uint32
	}{
		{"send", unix.SYS_SENDTO, [6]uint64{0, 0, 0, unix.MSG_NOSIGNAL}, actAllow},
		{"sendto that connects", unix.SYS_SENDTO, [6]uint64{0, 0, 0, high | unix.MSG_NOSIGNAL | unix.MSG_FASTOPEN}, actUnsupported},
		{"sendmsg that connects", unix.SYS_SENDMSG, [6]uint64{0, 0, unix.MSG_FASTOPEN}, actUnsupported},
		{"sendmmsg that connects", unix.SYS_SENDMMSG, [6]uint64{0, 0, 0, unix.MSG_FASTOPEN}, actUnsupported},
		{"an option that connects later", unix.SYS_SETSOCKOPT, [6]uint64{0, high | unix.IPPROTO_TCP, high | unix.TCP_FASTOPEN_CONNECT}, actUnsupported},
		{"an option of TCP", unix.SYS_SETSOCKOPT, [6]uint64{0, unix.IPPROTO_TCP, unix.TCP_NODELAY}, actAllow},
		{"an option of another level", unix.SYS_SETSOCKOPT, [6]uint64{0, unix.SOL_SOCKET, unix.TCP_FASTOPEN_CONNECT}, actAllow},
		{"io_uring", unix.SYS_IO_URING_SETUP, [6]uint64{}, actDeny},
	} {
		for _, served := range []bool{false, true} {
			if got := judge(t, filterProgram(true, served), call{nativeArch, c.nr, c.args}); got != c.want {
				t.Errorf("%s, served %v: got %#x, want %#x", c.name, served, got, c.want)
			}
		}
	}
}

// TestFilterDeniesAll goes through the list, with and without network.
func TestFilterDeniesAll(t *testing.T) {
	for _, network := range []bool{false, true} {
		prog := filterProgram(network, true)
		for _, nr := range append(deniedCalls, deniedHere...) {
			if got := judge(t, prog, call{nativeArch, nr, [6]uint64{}}); got != actDeny {
				t.Errorf("call %d: got %#x", nr, got)
			}
		}
		if len(prog) > 4096 {
			t.Errorf("%d instructions are more than the kernel takes", len(prog))
		}
	}
}

// TestDeniedCallsFromInside does some of them for real, since numbers may be wrong.
func TestDeniedCallsFromInside(t *testing.T) {
	a := newAgent(t)
	w := newWorld(t)
	c := w.confinement(t, canConfine(t), onlyWorkspace())
	script := ""
	for _, nr := range append(deniedCalls, deniedHere...) {
		script += "t call " + strconv.Itoa(int(nr)) + " 2>/dev/null && echo " + strconv.Itoa(int(nr)) + "\n"
	}
	if _, out := a.run(t, w, c, "", script+"t x32 2>/dev/null && echo x32; :"); out != "" {
		t.Errorf("calls that reached the kernel: %s", out)
	}
}
