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
	Ready    func(pid int) // called when it serves; may be nil
	OnDemand bool          // another process started it because it needed one

	// Beside is called when the services are served beside a process that another one started on demand; may be nil.
	Beside func(pid int)
}

// ErrServed says that another process serves this home already.
var ErrServed = remote.ErrServed

// Serve owns conversations for other processes until ctx ends, or nothing goes on any more. An
// approval that is pending and a turn that is held count as something. If a process serves that another one started on demand,
// such as a terminal whose server was killed, the services are served beside it, until it ends and this one takes its place.
// The caller calls Close.
func (a *App) Serve(ctx context.Context, o ServeOptions) error {
	leave, err := a.claim(o)
	other, _ := remote.FindServe(filepath.Join(a.Config.Home, runDir))
	beside := errors.Is(err, ErrServed) && len(o.Services) > 0 && other.OnDemand
	if err != nil && !beside {
		return err
	}
	if !beside {
		defer leave()
	}
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
	if beside {
		if o.Beside != nil {
			o.Beside(other.PID)
		}
		running.Go(func() { a.takeOver(ctx, o) })
	} else if o.Ready != nil {
		o.Ready(os.Getpid())
	}
	a.awaitIdle(ctx, o.Idle)
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// takeOverEvery is how often a process that serves beside another one looks whether that has ended.
const takeOverEvery = 2 * time.Second

// takeOver makes this the process that serves when the other one has ended, until ctx ends.
func (a *App) takeOver(ctx context.Context, o ServeOptions) {
	look := time.NewTicker(takeOverEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if isServed(a.Config.Home) {
			continue
		}
		if leave, err := a.claim(o); err == nil {
			defer leave()
			if o.Ready != nil {
				o.Ready(os.Getpid())
			}
			<-ctx.Done()
			return
		}
	}
}

// claim makes this the process that serves.
func (a *App) claim(o ServeOptions) (func(), error) {
	address, err := a.host.Listen()
	if err != nil {
		return nil, err
	}
	return remote.ClaimServe(filepath.Join(a.Config.Home, runDir), remote.Served{PID: os.Getpid(), Address: address, OnDemand: o.OnDemand})
}

// awaitIdle returns when nothing went on for some time, or ctx has ended.
func (a *App) awaitIdle(ctx context.Context, bound time.Duration) {
	idle := time.NewTimer(bound)
	for {
		if bound == 0 || a.Engine.OpenCount() > 0 || a.host.Clients() > 0 || a.uses.count.Load() > 0 {
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
	over := make(chan error, 1) // room for the end: nobody may ask
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

// Server returns the process that serves a home, if one does.
func (a *App) Server() (pid int, ok bool) {
	s, ok := remote.FindServe(filepath.Join(a.Config.Home, runDir))
	return s.PID, ok
}
