package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	buildFlags []string // of fermata
	binaryDir  string   // removed when all tests have ended
)

// binary builds fermata once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	name := filepath.Join(dir, "fermata")
	cmd := exec.Command("go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", name, "./cmd/fermata"})...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build fermata: %v\n%s", err, out)
	}
	return name, nil
})

// listen starts a server that processes can reach.
func listen(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	runClock(t)
	o.Host, o.Port, o.JetStream, o.NoSigs, o.NoLog = "127.0.0.1", max(o.Port, 0), true, true, true
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// A machine is a home and a directory of its own.
type machine struct {
	t         testing.TB
	home, dir string
	fermata   string
}

func newMachine(t testing.TB, url string, settings ...string) *machine {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, home: t.TempDir(), dir: t.TempDir(), fermata: bin}
	if !strings.Contains(strings.Join(settings, "\n"), "lease_ms") {
		settings = append(settings, "lease_ms = 60000") // a busy machine must not lose it
	}
	text := "[store]\nurl = \"" + url + "\"\n" + strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(m.home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), m.fermata, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "FERMATA_HOME="+m.home)
	return cmd
}

// run runs fermata to its end and returns everything it printed.
func (m *machine) run(args ...string) (string, error) {
	out, err := m.command(args...).CombinedOutput()
	return string(out), err
}

func (m *machine) must(args ...string) string {
	m.t.Helper()
	out, err := m.run(args...)
	if err != nil {
		m.t.Fatalf("fermata %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

var turn = []string{"exec", "--demo", "--skip-git-repo-check"}

// Whatever is wrong with the servers is said in words that help.
func TestWordsForWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{Username: "bob", Password: "secret"})
	url := s.ClientURL()
	expect := func(m *machine, want string, args ...string) {
		t.Helper()
		out, err := m.run(args...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("fermata %v: %v, %q, want %q", args, err, out, want)
		}
		if strings.Contains(out, "secret") {
			t.Errorf("a password is shown: %s", out)
		}
	}
	expect(newMachine(t, url, `user = "bob"`, `password = "secret2"`), "refused the credentials", append(turn, "hi")...)
	expect(newMachine(t, url), "refused the credentials", "list")

	js := dial(t, url, natsgo.UserInfo("bob", "secret"))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	auth := []string{`user = "bob"`, `password = "secret"`}
	expect(newMachine(t, url, append(auth, `stream = "orders"`)...), "it was not made for conversations", "list")

	full := newMachine(t, url, append(auth, `stream = "small"`, `max_bytes = 20000`)...)
	full.must(append(turn, "talk 5")...)
	expect(full, "the stream is full", append(turn, "run: seq 100000")...)
	if out := full.must("list"); strings.Count(out, "\n") < 1 {
		t.Errorf("after the stream was full: %s", out)
	}

	gone := newMachine(t, url, auth...)
	gone.must(append(turn, "hi")...)
	s.Shutdown()
	s.WaitForShutdown()
	expect(gone, "no NATS server answers at", append(turn, "hi")...)
	if out := gone.must("doctor", "--demo"); !strings.Contains(out, "problem: no NATS server answers") {
		t.Errorf("doctor says %s", out)
	}
}

// running returns how many processes have the text among their arguments.
func running(text string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	n := 0
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if bytes.HasPrefix(b, []byte("sleep\x00")) && bytes.Contains(b, []byte(text)) {
			n++
		}
	}
	return n
}

// eventually waits for something, for longer than any busy machine needs.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// startTurn begins a turn that runs a command for a long time, and returns its process
// and what names the command's.
func (m *machine) startTurn() (cmd *exec.Cmd, out *output, mark string) {
	m.t.Helper()
	cmd, out, mark, ok := m.tryTurn()
	if !ok {
		m.t.Fatalf("the turn ended: %s", out)
	}
	return cmd, out, mark
}

// tryTurn is startTurn with a lease that the machine may be too busy to keep: it reports whether the command runs.
func (m *machine) tryTurn() (cmd *exec.Cmd, out *output, mark string, ok bool) {
	m.t.Helper()
	mark = fmt.Sprintf("9999.%d", time.Now().UnixNano()%1e9)
	cmd, out = m.start(append(turn, "run: sleep "+mark)...)
	eventually(m.t, "the command runs", func() bool {
		ok = running(mark) == 1
		return ok || isZombie(cmd.Process.Pid)
	})
	return cmd, out, mark, ok
}

// isZombie reports whether a process of this one has ended and was not waited for.
func isZombie(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return bytes.Contains(b, []byte(") Z "))
}

// withLease calls f with longer and longer leases until it reports that the machine could keep one.
func withLease(t *testing.T, f func(ms int) bool) {
	t.Helper()
	for ms := 3000; ms < 100_000; ms *= 2 {
		if f(ms) {
			return
		}
		t.Logf("this machine is too busy for a lease of %d ms", ms)
	}
	t.Fatal("this machine is too busy for any lease")
}

// A process that is killed loses nothing, and another machine takes its conversation over.
func TestMachineIsKilled(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	cmd, _, mark := a.startTurn()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the command is dead", func() bool { return running(mark) == 0 })
	endLeaseOf(t, s.ClientURL(), "fermata", cmd.Process.Pid)
	answer := b.must("exec", "--skip-git-repo-check", "resume", "--last", "--all", "--demo", "what happened?")
	if !strings.Contains(answer, "sleep "+mark) {
		t.Errorf("after the take-over: %s", answer)
	}
	if report := b.must("fsck"); !strings.Contains(report, " ok") {
		t.Errorf("fsck: %s", report)
	}
}

// A process that is killed, or halted for longer than its lease, leaves no command running; when its lease has ended
// another machine takes its conversation over, and it writes nothing any more.
func TestLeaseOfAProcessEnds(t *testing.T) {
	needsFull(t)
	s := listen(t, &server.Options{})
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "halted": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			withLease(t, func(ms int) bool {
				stream, lease := fmt.Sprintf("stream = \"%s%d\"", name, ms), fmt.Sprintf("lease_ms = %d", ms)
				a, b := newMachine(t, s.ClientURL(), stream, lease), newMachine(t, s.ClientURL(), stream)
				cmd, out, mark, ok := a.tryTurn()
				if !ok {
					return false
				}
				_ = cmd.Process.Signal(signal)
				if signal == syscall.SIGSTOP && isZombie(cmd.Process.Pid) {
					return false // the turn has failed before
				}
				ended := make(chan struct{})
				go func() { defer close(ended); cmd.Wait() }() // ended by the signals below
				eventually(t, "the command is dead", func() bool { return running(mark) == 0 })
				var answer string
				eventually(t, "another takes over", func() bool {
					var err error
					answer, err = b.run("exec", "--skip-git-repo-check", "resume", "--last", "--all", "--demo", "what happened?")
					return err == nil
				})
				if !strings.Contains(answer, "sleep "+mark) {
					t.Errorf("after the take-over: %s", answer)
				}
				before := b.must("fsck")
				cmd.Process.Signal(syscall.SIGCONT)
				<-ended
				after := b.must("fsck")
				if before != after || !strings.Contains(after, " ok") {
					t.Errorf("before it continued:\n%s\nafter:\n%s\nit said:\n%s", before, after, out)
				}
				return true
			})
		})
	}
}

// What was copied to files and back is the same, and can be resumed.
func TestCopyThereAndBack(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	m := newMachine(t, s.ClientURL())
	for i := range 3 {
		m.must(append(turn, fmt.Sprintf("run: echo %d", i))...)
	}
	dir := t.TempDir()
	if out := m.must("store", "copy", "--from", s.ClientURL(), "--to", dir); !strings.Contains(out, "3 conversations") {
		t.Errorf("copy: %s", out)
	}
	other := listen(t, &server.Options{})
	back := newMachine(t, other.ClientURL())
	if out := back.must("store", "copy", "--from", dir, "--to", other.ClientURL()); !strings.Contains(out, "3 conversations") {
		t.Errorf("copy back: %s", out)
	}
	if a, b := m.must("fsck"), back.must("fsck"); a != b || strings.Count(a, " ok") != 3 {
		t.Errorf("there:\n%s\nback:\n%s", a, b)
	}
	back.must("exec", "--skip-git-repo-check", "resume", "--last", "--all", "--demo", "what happened?")
}
