package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/fermata-agent/fermata/internal/proc"
	"golang.org/x/sys/unix"
)

// tools do from inside what no shell can.
var tools = map[string]func(args []string) error{
	"dial":       dialTool,
	"dns":        dnsTool,
	"listen":     listenTool,
	"socket":     socketTool,
	"socketpair": socketpairTool,
	"setxattr":   setxattrTool,
	"mknod":      mknodTool,
	"handle":     handleTool,
	"ptrace":     ptraceTool,
	"poke":       pokeTool,
	"open":       openTool,
	"pidfd":      pidfdTool,
	"prlimit":    prlimitTool,
	"userns":     usernsTool,
	"call":       callTool,
	"shm":        shmTool,
	"setns":      setnsTool,
	"chroot":     func(args []string) error { return unix.Chroot(args[0]) },
	"mount":      func(args []string) error { return unix.Mount(args[0], args[1], "", unix.MS_BIND, "") },
	"remount":    func(args []string) error { return unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"umount":     func(args []string) error { return unix.Unmount(args[0], unix.MNT_DETACH) },
	"memfd":      memfdTool,
	"unix":       unixPairTool,
	"local":      localTool,
	"flip":       flipTool,
	"pairsend":   pairSendTool,
	"pty":        ptyTool,
	"shared":     sharedTool,
	"exchange":   exchangeTool,
	"agent":      agentTool,
	"fchmod":     fchmodTool,
	"x32":        x32Tool,
	"thread":     threadTool,
}

// dialTool connects and says hello, so that a datagram is sent as well.
func dialTool(args []string) error {
	conn, err := net.Dial(args[0], args[1])
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("hello"))
	return err
}

// dnsTool asks a name server, which has to answer that there is no such name.
func dnsTool(args []string) error {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", args[0])
	}}
	_, err := r.LookupHost(context.Background(), "escape.example.")
	var answer *net.DNSError
	if errors.As(err, &answer) && answer.IsNotFound {
		return nil
	}
	return err
}

func listenTool(args []string) error {
	l, err := net.Listen(args[0], args[1])
	if err != nil {
		return err
	}
	return l.Close()
}

// socketTool makes a socket of a family, in any type.
func socketTool(args []string) error {
	family, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
		if _, err = unix.Socket(family, kind, 0); err == nil {
			return nil
		}
	}
	return err
}

func socketpairTool([]string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fds[0], []byte("x")); err != nil {
		return err
	}
	_, err = unix.Read(fds[1], make([]byte, 1))
	return err
}

func setxattrTool(args []string) error {
	return unix.Setxattr(args[0], "user.escape", []byte("x"), 0)
}

// mknodTool makes the null device.
func mknodTool(args []string) error {
	return unix.Mknod(args[0], unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
}

// handleTool opens args[1] by its number, through the mount of args[0], and
// writes to it.
func handleTool(args []string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, args[1], 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, handle, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("escaped"))
	return err
}

// ptraceTool seizes a process, which does not halt it, and lets go by ending.
func ptraceTool(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
	return errnoOrNil(errno)
}

// pokeTool writes into the memory of a process.
func pokeTool(args []string) error {
	pid, err1 := strconv.Atoi(args[0])
	address, err2 := strconv.ParseUint(args[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	local := []byte("X")
	_, err := unix.ProcessVMWritev(pid,
		[]unix.Iovec{{Base: &local[0], Len: 1}},
		[]unix.RemoteIovec{{Base: uintptr(address), Len: 1}}, 0)
	return err
}

// openTool opens a file for writing and leaves it alone.
func openTool(args []string) error {
	f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func pidfdTool(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// prlimitTool takes the right to open files from a process.
func prlimitTool(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: 1, Max: 1}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
}

// usernsTool starts a program in a new user namespace.
func usernsTool([]string) error {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER},
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// callTool does a system call with arguments that make no sense. Any answer but
// that it is not permitted, or not there, means that the kernel looked at it.
func callTool(args []string) error {
	nr, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	minus := ^uintptr(0)
	_, _, errno := unix.RawSyscall6(uintptr(nr), minus, 0, 0, 0, 0, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return errno
	}
	return nil
}

// shmTool writes into a System V segment.
func shmTool(args []string) error {
	id, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	b[0] = 'X'
	return nil
}

// setnsTool moves into a namespace of a process.
func setnsTool(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, 0)
}

// memfdTool executes a program that is in memory only.
func memfdTool(args []string) error {
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, program); err != nil {
		return err
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"true"}, nil)
}

// unixPairTool listens on a path and on an abstract name and connects to itself.
func unixPairTool(args []string) error {
	for _, name := range []string{args[0], "@" + args[0]} {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		if err := dialTool([]string{"unix", name}); err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// ptyTool makes a terminal and writes through it.
func ptyTool([]string) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return fmt.Errorf("number: %w", err)
	}
	slave, err := unix.Open(filepath.Join(devPts, strconv.Itoa(n)), unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, &unix.Winsize{Row: 3, Col: 4}); err != nil {
		return fmt.Errorf("size: %w", err)
	}
	if _, err := unix.Write(slave, []byte("x")); err != nil {
		return err
	}
	_, err = unix.Read(master, make([]byte, 1))
	return err
}

// sharedTool makes a file in /dev/shm and maps it.
func sharedTool([]string) error {
	name := fmt.Sprintf("%s/fermata-%d", devShm, os.Getpid())
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	if err := f.Truncate(4096); err != nil {
		return err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	b[0] = 1
	return unix.Munmap(b)
}

// agentTool is a fermata that runs a script confined to a directory.
func agentTool(args []string) error {
	s, err := proc.NewSpawner()
	if err != nil {
		return err
	}
	defer s.Close()
	policy := onlyWorkspace()
	c, err := New(policy, Place{Cwd: args[0]})
	if err != nil {
		return err
	}
	spec := proc.Spec{Argv: []string{"sh", "-c", args[1]}}
	if err := c.Set(&spec); err != nil {
		return err
	}
	r := s.Run(context.Background(), spec, func(_ proc.Stream, b []byte) { _, _ = os.Stdout.Write(b) })
	fmt.Println("exit", r.ExitCode, r.Err, "mounts", c.plan.Mounts != mountsNone)
	return nil
}

// exchangeTool swaps two files.
func exchangeTool(args []string) error {
	return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
}

// fchmodTool changes the mode through a file that is open for reading.
func fchmodTool(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o4755)
}

// x32Tool makes a socket by a call of the x32 interface.
func x32Tool([]string) error {
	const x32Bit = 0x40000000
	_, _, errno := unix.RawSyscall(x32Bit+unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
	return errnoOrNil(errno)
}

// threadTool writes from another thread than the first.
func threadTool(args []string) error {
	done := make(chan error)
	for range 4 {
		go func() { done <- os.WriteFile(args[0], []byte("escaped"), 0o644) }()
	}
	return errors.Join(<-done, <-done, <-done, <-done)
}

func errnoOrNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
