package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// ErrDrained says that a node has ended because it was drained: nothing of it runs any more.
var ErrDrained = errors.New("the node was drained")

// A Worker is the service that runs turns which were submitted to the fleet: see app.Options.Member.
type Worker struct {
	Turns  *fleet.Turns
	Report func(fleet.Report)
	Say    func(string) // a line for people
	Ready  func()       // called when it takes part

	// Drain has the node end when its turns have ended, if it is closed. nil is never.
	Drain <-chan struct{}

	Share *Share // nil if the node is not shared
}

// Serve runs turns until ctx ends, or the node is drained: then the error is ErrDrained.
func (w Worker) Serve(ctx context.Context, a *app.App) error {
	defer a.Busy()()
	queue, shared, err := openQueue(ctx, a)
	if err != nil {
		return err
	}
	link, err := shared.Link(ctx)
	if err != nil {
		return err
	}
	drain := newDrain(w.Say)
	asked, err := link.Conn.Subscribe(nats.ControlSubject(link.Name, shared.Node()), drain.control)
	if err != nil {
		return err
	}
	defer func() { _ = asked.Unsubscribe() }() // else the connection has ended
	if err := shared.TakePart(ctx); err != nil {
		return err
	}
	w.Ready()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go drain.await(ctx, w.Drain, stop) // ends with ctx
	worker := fleet.Worker{
		Queue: queue, Local: a.Engine.Local, Engine: a.Engine, Member: a.Member, Turns: w.Turns, Report: w.Report, Drain: drain.begun,
		Await: func(ctx context.Context) { a.AwaitTurns(ctx, func(p.TurnID) {}) },
	}
	worker.Prepare = func(ctx context.Context, work fleet.Work) (*p.Overrides, error) { return prepare(ctx, a, work) }
	if w.Share != nil {
		w.Share.join(ctx, &worker, stop)
	}
	if err := worker.Run(ctx); err != nil {
		return err
	}
	switch {
	case w.Share != nil && w.Share.isAlone():
		return fleet.ErrAlone
	case drain.isBegun():
		return ErrDrained
	}
	return nil
}

// A control is what a node is asked for.
type control struct {
	Drain  bool          `json:"drain"`
	Within time.Duration `json:"within,omitempty"` // after which turns that still run are interrupted; 0 is never
}

// A drain is whether a node was asked to end.
type drain struct {
	begun  chan struct{} // closed when it was
	begin  func()
	within chan time.Duration // room for one: the first limit counts
	say    func(string)
}

func newDrain(say func(string)) *drain {
	d := &drain{begun: make(chan struct{}), within: make(chan time.Duration, 1), say: say}
	d.begin = sync.OnceFunc(func() {
		say("draining: takes nothing more, and ends when its turns have ended")
		close(d.begun)
	})
	return d
}

func (d *drain) isBegun() bool {
	select {
	case <-d.begun:
		return true
	default:
		return false
	}
}

// control answers who asks the node for something.
func (d *drain) control(m *natsgo.Msg) {
	var c control
	if json.Unmarshal(m.Data, &c) != nil || !c.Drain {
		_ = m.Respond([]byte(`{"error":"this version of the node does not know what it is asked for"}`))
		return
	}
	d.begin()
	if c.Within > 0 {
		select {
		case d.within <- c.Within:
		default: // there is a limit already
		}
	}
	_ = m.Respond([]byte(`{}`)) // else who asked sees that the node drains, or asks again
}

// await begins to drain when local is closed, and calls stop when the time for that is over.
func (d *drain) await(ctx context.Context, local <-chan struct{}, stop func()) {
	var limit <-chan time.Time
	for {
		select {
		case <-local:
			local = nil
			d.begin()
		case t := <-d.within:
			limit = time.After(t)
		case <-limit:
			d.say("draining: the time is over; turns that still run are interrupted")
			stop()
			return
		case <-ctx.Done():
			return
		}
	}
}

// prepare says whether a turn of the fleet can be run here.
func prepare(ctx context.Context, a *app.App, w fleet.Work) (*p.Overrides, error) {
	if w.Adopt {
		has, err := a.Store().Trees.Has(ctx, w.Conversation)
		if err == nil && !has {
			err = &fleet.UnsuitableError{Err: errors.New("its work tree is on another machine")}
		}
		if err != nil || w.Git != nil {
			return nil, err
		}
	} else if w.Git != nil {
		dir, err := a.Store().Trees.Begin(ctx, w.Conversation, *w.Git)
		return &p.Overrides{Cwd: &dir}, err
	}
	if !filepath.IsAbs(w.Dir) {
		return nil, fmt.Errorf("%q is not the name of a directory from the root", w.Dir)
	}
	if info, err := os.Stat(w.Dir); err != nil || !info.IsDir() {
		return nil, &fleet.UnsuitableError{Err: fmt.Errorf("there is no directory %s here", w.Dir)}
	}
	return nil, nil
}
