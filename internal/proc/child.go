//go:build unix

package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/socket"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// shim is a started shim as fermata sees it. It serves one command.
type shim struct {
	kind    kind
	process *os.Process
	control *os.File // closing it means stop
	stdout  *os.File
	stderr  *os.File
	stdin   *os.File      // nil without kind.input
	socket  *os.File      // our end of what Spec.Serve is for
	id      tree.Identity // whole after hello

	// reports is closed when the shim is dead and waited for, or as good as (see
	// reap). It holds all that a shim says before it is read, so that its
	// reader never blocks.
	reports chan report
}

const (
	reportsPerShim = 8
	helloLimit     = 10 * time.Second
	deathLimit     = 250 * time.Millisecond // much for a busy machine, little for who waits
)

// shimEnv is the environment of shim and stage, not of the command. They have
// nothing to compute: one processor spares them the start of threads. The runtime
// shall not ask the system how many there are, nor prepare a profile of memory.
func shimEnv() []string {
	return []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,memprofilerate=0"}
}

// newShim starts a shim and does not wait for it.
func newShim(k kind) (*shim, error) {
	exe, err := ownExecutable()
	if err != nil {
		return nil, fmt.Errorf("start shim: %w", err)
	}

	var p pipes
	p.openAll(k)
	if p.err != nil {
		p.closeTheirs()
		p.closeOurs()
		return nil, fmt.Errorf("start shim: %w", p.err)
	}

	attr := shimAttr()
	if k.pids {
		namespaceAttr(attr)
	}
	start := func() (process *os.Process, err error) {
		return os.StartProcess(exe, []string{shimName, k.part(partSupervise)}, &os.ProcAttr{
			Dir:   "/", // a waiting shim must not hold a file system busy
			Env:   shimEnv(),
			Files: []*os.File{p.stdinR, p.stdoutW, p.stderrW, p.controlR, p.statusW, p.socketW},
			Sys:   attr,
		})
	}
	process, err := reserving(k.pids, start)
	p.closeTheirs() // now, or the death of the shim would not be seen below
	if err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("start shim: %w", err)
	}

	s := &shim{
		kind: k, process: process, control: p.controlW, stdout: p.stdoutR, stderr: p.stderrR, stdin: p.stdinW, socket: p.socketR,
		id:      tree.Identity{PID: process.Pid},
		reports: make(chan report, reportsPerShim),
	}
	go s.follow(p.statusR)
	if err := tree.Identify(&s.id); err != nil {
		s.dismiss()
		return nil, fmt.Errorf("start shim: %w", err)
	}
	return s, nil
}

// reserving starts a process, with withReserve if it makes a user namespace.
func reserving[T any](namespace bool, start func() (T, error)) (process T, err error) {
	if !namespace {
		return start()
	}
	err = withReserve(func() (err error) {
		process, err = start()
		return err
	})
	return process, err
}

// pipes are the pipes between fermata and a shim.
type pipes struct {
	stdinR, stdinW                       *os.File // nil unless the command has input
	stdoutR, stdoutW, stderrR, stderrW   *os.File
	controlR, controlW, statusR, statusW *os.File
	socketR, socketW                     *os.File // a socket pair
	err                                  error
}

func (p *pipes) openAll(k kind) {
	if k.input {
		p.stdinR, p.stdinW = p.open()
	}
	p.stdoutR, p.stdoutW = p.open()
	p.stderrR, p.stderrW = p.open()
	p.controlR, p.controlW = p.open()
	p.statusR, p.statusW = p.open()
	if p.err == nil {
		p.socketR, p.socketW, p.err = socket.Pair()
	}
}

func (p *pipes) open() (r, w *os.File) {
	if p.err != nil {
		return nil, nil
	}
	r, w, p.err = os.Pipe()
	return r, w
}

func (p *pipes) closeTheirs() {
	closeFiles(p.stdinR, p.stdoutW, p.stderrW, p.controlR, p.statusW, p.socketW)
}

func (p *pipes) closeOurs() {
	closeFiles(p.stdinW, p.stdoutR, p.stderrR, p.controlW, p.statusR, p.socketR)
}

// closeFiles closes what is open; nil is fine.
func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// follow passes on what the shim says until it is dead. Only the shim holds the
// other end, so the end of file comes with its death.
func (s *shim) follow(status *os.File) {
	defer close(s.reports)
	defer status.Close()
	in := json.NewDecoder(status)
	for {
		var r report
		if in.Decode(&r) != nil {
			break
		}
		s.reports <- r
	}
	s.reap()
}

// reap waits for a shim that has ended. The kernel keeps the first process of a
// PID namespace until all others are dead, and those that hang in a file system
// may never be: no caller must wait for that.
func (s *shim) reap() {
	gone := make(chan struct{})
	go func() {
		_, _ = s.process.Wait()
		close(gone)
	}()
	limit := time.NewTimer(deathLimit)
	defer limit.Stop()
	select {
	case <-gone:
	case <-limit.C:
	}
}

// hello waits until the shim is ready, and completes its identity.
func (s *shim) hello(ctx context.Context, token string) error {
	limit := time.NewTimer(helloLimit)
	defer limit.Stop()
	select {
	case r, ok := <-s.reports:
		if !ok || r.Hello == nil {
			return fmt.Errorf("start shim: %w", ErrShimLost)
		}
		if !s.kind.pids { // else its number has no meaning here
			s.id.Leader = r.Hello.Leader
		}
		s.id.Cgroup = r.Hello.Cgroup
	case <-limit.C:
		return errors.New("start shim: it does not answer")
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	s.id.Token = token
	if err := tree.IdentifyLeader(&s.id); err != nil {
		return fmt.Errorf("start shim: %w", err)
	}
	return nil
}

// drain takes what a shim says that is no longer read.
func (s *shim) drain() {
	for range s.reports {
	}
}

// wake lets a halted shim go on.
func (s *shim) wake() { _ = s.process.Signal(syscall.SIGCONT) }

// dismiss ends a shim that was never released, and waits for it.
func (s *shim) dismiss() {
	_ = s.control.Close()
	s.wake()
	limit := time.AfterFunc(defaultBound, func() { _ = s.process.Kill() })
	defer limit.Stop()
	idle := false
	for r := range s.reports {
		idle = idle || r.Idle != nil
	}
	closeFiles(s.stdin, s.stdout, s.stderr, s.socket)
	if !idle { // something killed it, and its stage fell to us
		tree.EndOrphans(s.id, 0, drainLimit)
	}
}
