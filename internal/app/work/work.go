// Package work is a process's part in a fleet: it runs turns that others submit, and submits some. What that means
// is in package fleet.
package work

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// errNoFleet says that conversations are in files.
var errNoFleet = &app.Error{
	Err:  errors.New("a fleet needs a store that its machines share"),
	Hint: "set [store] url in config.toml to your NATS servers: see docs/fleet.md",
}

// openQueue opens the queue of the fleet.
func openQueue(ctx context.Context, a *app.App) (*fleet.Queue, *nats.Store, error) {
	shared, ok := a.Store().Shared()
	if !ok {
		return nil, nil, errNoFleet
	}
	link, err := shared.Link(ctx)
	if err != nil {
		return nil, nil, err
	}
	q, err := fleet.OpenQueue(ctx, link)
	return q, shared, err
}

// Options say how a turn is submitted to a fleet.
type Options struct {
	Label  string          // of the node that is to run it; empty is any
	Wait   time.Duration   // how long to wait until one has begun; negative is without end
	Git    *git.Source     // what the node checks out to work in; nil if it works in a directory that it has
	Detach <-chan struct{} // if it closes, the turn is left to the fleet
	Name   *Name           // under which it is submitted; nil is one that no other submission has
	Say    func(string)    // a line for people
}

// Submit has some node run a turn in a conversation that was created here, and returns when that has begun:
// an engine with which the turn is submitted and followed as if it ran here.
func Submit(ctx context.Context, a *app.App, id p.ConversationID, dir string, turn p.UserTurn, o Options) (engine.Engine, error) {
	if err := a.Engine.Release(ctx, id); err != nil {
		return nil, err
	}
	queue, shared, err := openQueue(ctx, a)
	if err != nil {
		return nil, err
	}
	s := fleet.Submission{
		Queue: queue, Nodes: shared.Nodes, Store: shared, Label: o.Label, Local: a.Engine.Local, Engine: a.Engine, Wait: o.Wait, Detach: o.Detach, Say: o.Say,
		Work: fleet.Work{Conversation: id, Op: p.OpJSON{Op: turn}, Name: rand.Text(), Client: a.Client, Dir: dir, Git: o.Git},
	}
	if o.Name != nil {
		s.Work.Name, s.Again = o.Name.Op, o.Name.Again
	}
	receipt, err := s.Start(ctx)
	if missing := (*fleet.NoNodeError)(nil); errors.As(err, &missing) {
		return nil, &app.Error{Err: err, Hint: missing.Hint()}
	}
	if err != nil {
		return nil, err
	}
	return fleet.Started(a.Engine, fleet.Following{Receipt: receipt, Wait: o.Wait, Say: o.Say}), nil
}

// Check returns an error unless other machines share the conversations of this one.
func Check(a *app.App) error {
	if _, ok := a.Store().Shared(); !ok {
		return errNoFleet
	}
	return nil
}

// CommitOf returns the commit that a source means, if the working directory is in a clone of its repository that has it; else
// what it is called, for who fetches it.
func CommitOf(ctx context.Context, a *app.App, from git.Source) string {
	if from.Ref == "" {
		return ""
	}
	repo, err := app.OpenGit(ctx, a.Config.Home, a.Cwd)
	if err != nil {
		return from.Ref // who fetches it says what is wrong
	}
	defer repo.Close()
	urls, err := repo.RemoteURLs(ctx)
	if err != nil || !slices.Contains(urls, from.URL) {
		return from.Ref
	}
	commit, err := repo.Commit(ctx, from.Ref)
	if err != nil {
		return from.Ref
	}
	return commit
}
