package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/remote"
)

// A Service is served beside the socket by the process that owns conversations for others
// (fermata serve): HTTP, for example.
type Service interface {
	// Serve serves the conversations of a until ctx ends. An error ends the whole process. While
	// it has clients it calls a.Busy, so that the process does not end as idle.
	Serve(ctx context.Context, a *App) error
}

// ServeOptions say how a process serves.
type ServeOptions struct {
	Idle     time.Duration // it ends when nothing went on for so long; 0 is never
	Services []Service
	Ready    func(pid int) // called when it serves, with the process that owns conversations for others
	OnDemand bool          // another process started it because it needed one
}

// ErrServed says that another process serves this home already.
var ErrServed = remote.ErrServed

// Serve owns conversations for other processes until ctx ends, or nothing goes on any more. An
// approval that is pending and a turn that is held count as something. If a process serves that a client started on demand, the
// services are served beside it, until it ends and this one takes its place. The caller calls Close.
func (a *App) Serve(ctx context.Context, o ServeOptions) error {
	dir := filepath.Join(a.Config.Home, runDir)
	address, err := a.host.Listen()
	if err != nil {
		return err
	}
	own := remote.Served{PID: os.Getpid(), Address: address, OnDemand: o.OnDemand}
	other, leave, err := remote.ClaimBeside(dir, own, len(o.Services) > 0)
	if err != nil {
		return err
	}
	defer func() { leave() }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	for _, s := range o.Services {
		running.Go(func() {
			if err := s.Serve(ctx, a); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	if other.PID != 0 {
		o.Ready(other.PID)
		leave, err = remote.AwaitServe(ctx, dir, own) // services are served meanwhile
	}
	if err == nil {
		o.Ready(own.PID)
	}
	a.awaitIdle(ctx, o.Idle)
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// awaitIdle returns when nothing went on for some time, or ctx has ended.
func (a *App) awaitIdle(ctx context.Context, bound time.Duration) {
	idle := time.NewTimer(bound)
	for {
		if bound == 0 || a.Engine.Local.OpenCount() > 0 || a.host.Clients() > 0 || a.uses.count.Load() > 0 {
			idle.Stop()
		} else {
			idle.Reset(bound)
		}
		select {
		case <-a.uses.changed:
		case <-idle.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// healthTime is how long the store has to answer.
const healthTime = 2 * time.Second

// Healthy says why this process cannot run turns at the moment: its store does not answer.
func (a *App) Healthy(ctx context.Context) error {
	shared, ok := a.store.Shared()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	link, err := shared.Link(ctx)
	if err == nil {
		_, err = link.Conn.RTT()
	}
	if err != nil {
		return errors.New("the NATS servers do not answer")
	}
	return nil
}

// Busy keeps a process that serves from ending as idle, until the returned function is called.
func (a *App) Busy() (done func()) {
	a.uses.add(1)
	return sync.OnceFunc(func() { a.uses.add(-1) })
}

// uses counts who needs the process, and notices when anything changes.
type uses struct {
	changed chan struct{} // has room for one: that there was a change
	count   atomic.Int64
}

func newUses() *uses { return &uses{changed: make(chan struct{}, 1)} }

func (u *uses) add(n int64) {
	u.count.Add(n)
	u.notice()
}

// notice never blocks.
func (u *uses) notice() {
	select {
	case u.changed <- struct{}{}:
	default: // it is noted already
	}
}

// serveFlag marks a process that was started by another one.
const serveFlag = "--started"

// connectServe connects to the process that serves a home, and starts it if there is none.
func connectServe(home string) func(context.Context, remote.Options) (*remote.Engine, error) {
	return func(ctx context.Context, o remote.Options) (*remote.Engine, error) {
		return remote.DialServe(ctx, filepath.Join(home, runDir), o, func() (func() error, error) { return startServe(home) })
	}
}

func isServed(home string) bool {
	_, ok := remote.FindServe(filepath.Join(home, runDir))
	return ok
}

// startServe starts a process that serves, in a session of its own, so that the end of our terminal is
// not its end. What it has to say is in serve.log.
func startServe(home string) (ended func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(home, "serve.log")
	log, err := regular.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, "serve", serveFlag)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "FERMATA_HOME="+home)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan error, 1) // buffered: the caller may not ask
	go func() { over <- cmd.Wait() }()
	return func() error {
		select {
		case err := <-over:
			over <- err
			if err != nil {
				return fmt.Errorf("%w; see %s", err, name)
			}
		default:
		}
		return nil
	}, nil
}
