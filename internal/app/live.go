package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Process is one that has conversations open, or that serves.
type Process struct {
	PID           int
	Host          string // its machine, or what it calls itself there; empty if it is of this home and machine
	Serves        bool   // it owns conversations for others
	Conversations []p.Snapshot
	Err           error // why it is not known what it has open

	engine *remote.Engine
	owner  engine.Owner // of another machine
}

// An Owner is another process that has a conversation open.
type Owner struct {
	PID    int  // 0 if there is none
	Serves bool // it owns conversations for others, so that a turn outlives its terminal
}

// A Move says that another process has a conversation open than before.
type Move = remote.Move

// RunBy returns the other process that has a conversation open which is followed here.
func (a *App) RunBy(id p.ConversationID) Owner {
	o := Owner{PID: a.Engine.Joined(id)}
	if o.PID != 0 {
		serves, ok := remote.FindServe(filepath.Join(a.Config.Home, runDir))
		o.Serves = ok && serves.PID == o.PID
	}
	return o
}

// AwaitTurns returns when no turn runs here, or ctx has ended. A process that is done with its own turn calls it
// before Close, which would interrupt those that other processes started or resumed here meanwhile. A turn that waits for a
// person or a limit does not need this process. begin is called for each turn that is waited for.
func (a *App) AwaitTurns(ctx context.Context, begin func(p.TurnID)) {
	last := p.TurnID(0)
	for more := true; more; {
		list := a.Engine.Local.Live(ctx)
		i := slices.IndexFunc(list, func(s p.Snapshot) bool { return s.Active && !s.Waiting || !s.Active && len(s.Inputs) > 0 })
		if i < 0 {
			return
		}
		if s := list[i]; s.Active && s.Turn != last { // else one is about to start
			last = s.Turn
			begin(s.Turn)
		}
		more = a.awaitChange(ctx, list[i])
	}
}

// awaitChange returns when a turn starts, ends or begins to wait, and false if that will not be known.
func (a *App) awaitChange(ctx context.Context, s p.Snapshot) bool {
	for e, err := range a.Engine.Local.Subscribe(ctx, s.ID, s.Last) {
		if err != nil {
			return false
		}
		switch e.Body.(type) {
		case *p.TurnStarted, *p.TurnEnded, *p.ApprovalRequested, *p.Held, *p.InputReturned:
			return true
		}
	}
	return false
}

// Processes returns the processes of this home and machine that listen, with what they have open.
// The caller calls the returned function when it has done with them.
func Processes(ctx context.Context, version string) ([]Process, func(), error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, nil, configError(err)
	}
	dir := filepath.Join(home, runDir)
	serves, _ := remote.FindServe(dir)
	addresses := remote.Addresses(dir)
	list := make([]Process, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() { list[i] = lookAt(ctx, address, version) })
	}
	asked.Wait()
	list = slices.DeleteFunc(list, func(x Process) bool { return x.PID == 0 })
	for i := range list {
		list[i].Serves = list[i].PID == serves.PID
	}
	slices.SortFunc(list, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return list, func() { disconnect(list) }, nil
}

// disconnect leaves the processes that were asked.
func disconnect(list []Process) {
	for _, x := range list {
		if x.engine != nil {
			x.engine.Close()
		}
	}
}

// lookAt asks the process behind an address what it has open. One that has ended has no number.
func lookAt(ctx context.Context, address, version string) Process {
	e, err := remote.Dial(ctx, address, remote.Options{Client: clientName(""), Program: version, Looks: true})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return Process{}
	}
	if err != nil {
		return Process{PID: remote.PIDOf(address), Err: err}
	}
	x := Process{PID: e.PID(), engine: e}
	x.Conversations, x.Err = e.Live(ctx)
	return x
}

// Stop interrupts the turn of a conversation that the process has open, and stops its background
// commands. It returns when they have ended.
func (x Process) Stop(ctx context.Context, c p.Snapshot) error {
	if c.Active {
		r, err := x.engine.Submit(ctx, c.ID, p.Interrupt{Turn: c.Turn})
		if err == nil {
			_, err = engine.FollowTurn(ctx, x.engine, c.ID, r.Turn, r.Seq, nil)
		}
		if err != nil && !errors.Is(err, engine.ErrNothingToStop) {
			return err
		}
	}
	snap, err := x.engine.Resume(ctx, c.ID)
	if err != nil {
		return err
	}
	for _, b := range snap.Background {
		if _, err := x.engine.Submit(ctx, c.ID, p.KillBackground{ID: b.ID}); err != nil && !errors.Is(err, engine.ErrNoBackground) {
			return err
		}
	}
	for len(snap.Background) > 0 {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if snap, err = x.engine.Resume(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// End ends a process that serves, and returns when it has gone.
func (x Process) End(ctx context.Context) error {
	if err := syscall.Kill(x.PID, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-x.engine.Ended():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
