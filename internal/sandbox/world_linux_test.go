package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/protocol"
	"golang.org/x/sys/unix"
)

// needs skips the test if a program is missing.
func needs(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			tb.Skipf("%s is not installed", p)
		}
	}
}

// world is a workspace and its surroundings, for one command.
type world struct {
	base    string
	ws      string // the workspace, with a repository and fermata's home in it
	outside string // belongs to the same user
	home    string
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	base := newDir(tb)
	w := &world{
		base: base, ws: filepath.Join(base, "ws"), outside: filepath.Join(base, "outside"),
		home: filepath.Join(base, "ws", ".fermata"),
	}
	for _, dir := range []string{"ws/.git/hooks", "ws/.git/objects", "ws/.fermata", "ws/sub", "outside/dir"} {
		must(tb, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for name, text := range map[string]string{
		"ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/config": "[core]\n", "ws/.git/hooks/old": "#!/bin/sh\n",
		"ws/.fermata/config.toml": "model = 1\n", "ws/file": "inside\n", "outside/file": "outside\n",
	} {
		must(tb, os.WriteFile(filepath.Join(base, name), []byte(text), 0o644))
	}
	if os.Getuid() == 0 {
		must(tb, unix.Mknod(filepath.Join(w.ws, "sub", "device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	}
	return w
}

// newDir is like T.TempDir, with a short name, free of symbolic links.
func newDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sb")
	must(tb, err)
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("something is left: %v", err)
		}
	})
	dir, err = filepath.EvalSymlinks(dir)
	must(tb, err)
	return dir
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// onlyWorkspace is workspace-write without the places for temporary files, in one
// of which the worlds lie.
func onlyWorkspace() protocol.SandboxPolicy {
	return protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
}

// confinement makes one for w, or fails.
func (w *world) confinement(tb testing.TB, a Ability, policy protocol.SandboxPolicy) *Confinement {
	tb.Helper()
	if policy.Mode == protocol.SandboxFullAccess {
		return nil
	}
	c, err := newWith(a, policy, Place{Cwd: w.ws, Home: w.home, Env: os.Environ(), PIDNamespace: a.Mounts})
	must(tb, err)
	return c
}

// snapshot describes all that must not change, and other files.
func (w *world) snapshot(tb testing.TB, others ...string) string {
	tb.Helper()
	var text strings.Builder
	for _, dir := range append(others, w.outside, filepath.Join(w.ws, ".git"), w.home) {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				fmt.Fprintln(&text, name, err)
				return nil
			}
			var st unix.Stat_t
			if err := unix.Lstat(name, &st); err != nil {
				return err
			}
			content := ""
			if d.Type().IsRegular() {
				b, err := os.ReadFile(name)
				content = string(b)
				if err != nil {
					content = err.Error()
				}
			}
			fmt.Fprintf(&text, "%s %o %d %d %d %v %v %q\n", name, st.Mode, st.Uid, st.Nlink, st.Ino, st.Mtim, st.Ctim, content)
			return nil
		})
		must(tb, err)
	}
	return text.String()
}

// agent is what fermata has that a command must not touch. It is this process.
type agent struct {
	spawner *proc.Spawner
	memory  *[8]byte
	env     []string // tells the command about it
	shared  string   // a file in /dev/shm
}

const abstractName = "@fermata-sandbox-test"

func newAgent(tb testing.TB) *agent {
	tb.Helper()
	s, err := proc.NewSpawner()
	must(tb, err)
	tb.Cleanup(s.Close)
	exe, err := os.Executable()
	must(tb, err)
	a := &agent{spawner: s, memory: new([8]byte), shared: newShared(tb)}
	a.env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/go/bin", "LC_ALL=C", "EXE=" + exe,
		"AGENT=" + strconv.Itoa(os.Getpid()), fmt.Sprintf("MEMORY=%d", uintptr(unsafe.Pointer(a.memory))),
	}
	dir := newDir(tb)
	abstract := fmt.Sprintf("%s-%d", abstractName, os.Getpid())
	a.set("TCP", a.listen(tb, "tcp", "127.0.0.1:0"))
	a.set("SOCKET", a.listen(tb, "unix", filepath.Join(dir, "s")))
	a.set("ABSTRACT", a.listen(tb, "unix", abstract))
	a.set("UDP", a.receive(tb, "udp", "127.0.0.1:0"))
	a.set("DGRAM", a.receive(tb, "unixgram", filepath.Join(dir, "d")))
	a.set("SEGMENT", newSegment(tb))
	a.set("SHARED", a.shared)
	a.set("FLIPS", itoa(longtest.Default(1500, 300)))
	a.set("PTS", newTerminal(tb))
	return a
}

func (a *agent) set(name, value string) { a.env = append(a.env, name+"="+value) }

// listen accepts connections and reads what they bring.
func (a *agent) listen(tb testing.TB, network, address string) string {
	tb.Helper()
	l, err := net.Listen(network, address)
	must(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// receive answers datagrams as a name server does that knows no name.
func (a *agent) receive(tb testing.TB, network, address string) string {
	tb.Helper()
	c, err := net.ListenPacket(network, address)
	must(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if n >= 12 {
				b[2], b[3] = 0x81, 0x83
				_, _ = c.WriteTo(b[:n], from)
			}
		}
	}()
	return c.LocalAddr().String()
}

func newSegment(tb testing.TB) string {
	tb.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	must(tb, err)
	tb.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	return strconv.Itoa(id)
}

func newShared(tb testing.TB) string {
	tb.Helper()
	f, err := os.CreateTemp(devShm, "fermata")
	must(tb, err)
	tb.Cleanup(func() { _ = os.Remove(f.Name()) })
	must(tb, f.Close())
	return f.Name()
}

// newTerminal is a terminal as that in which fermata runs.
func newTerminal(tb testing.TB) string {
	tb.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(tb, err)
	tb.Cleanup(func() { _ = unix.Close(master) })
	must(tb, unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	must(tb, err)
	return filepath.Join(devPts, strconv.Itoa(n))
}

// toolkit is put before every script.
const toolkit = `t() { n=$1; shift; FERMATA_SANDBOX_TOOL=$n "$EXE" "$@"; }
`

// run runs a script in the workspace.
func (a *agent) run(tb testing.TB, w *world, c *Confinement, dir, script string, env ...string) (proc.Result, string) {
	tb.Helper()
	spec := proc.Spec{
		Argv: []string{"sh", "-c", toolkit + script},
		Dir:  filepath.Join(w.ws, dir),
		Env:  append(append([]string{"OUT=" + w.outside, "WS=" + w.ws, "HOME=" + w.base}, a.env...), env...),
	}
	return a.runSpec(tb, c, spec)
}

// runAll runs scripts in the workspace, one after the other in one command, each in a shell of its own. It
// returns how each ended, with -1 for one that did not.
func (a *agent) runAll(tb testing.TB, w *world, c *Confinement, scripts []string, env ...string) []int {
	tb.Helper()
	var all strings.Builder
	codes := make([]int, len(scripts))
	for i, script := range scripts {
		codes[i] = -1
		fmt.Fprintf(&all, "(\n%s\n) >/dev/null 2>&1\necho %d $?\n", script, i)
	}
	_, out := a.run(tb, w, c, "", all.String(), env...)
	for line := range strings.Lines(out) {
		var i, code int
		if _, err := fmt.Sscanf(line, "%d %d\n", &i, &code); err == nil && i < len(codes) {
			codes[i] = code
		}
	}
	return codes
}

func (a *agent) runSpec(tb testing.TB, c *Confinement, spec proc.Spec) (proc.Result, string) {
	tb.Helper()
	must(tb, c.Set(&spec))
	var out capture.Capture
	r := a.spawner.Run(tb.Context(), spec, out.Write)
	if r.Err != nil && !errors.Is(r.Err, proc.ErrShimLost) {
		tb.Fatalf("result %+v", r)
	}
	return r, out.Text()
}

// inPart reports whether the one of index i of many is in the part that a plain run takes: every nth.
func inPart(i, nth int) bool { return longtest.On() || i%nth == 0 }

// victim is another process of the user.
func newVictim(tb testing.TB) *exec.Cmd {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	cmd := exec.CommandContext(ctx, "sleep", "1000")
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return cmd
}
