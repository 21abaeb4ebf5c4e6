// Package background finds and ends the background commands of a conversation, whichever process runs it.
package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Conversations are what is needed of them.
type Conversations interface {
	Resume(ctx context.Context, id p.ConversationID) (p.Snapshot, error)
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)
	Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error]
	Owner(ctx context.Context, id p.ConversationID) (engine.Owner, bool, error)
	Shutdown(ctx context.Context) error
}

// A Command is a background command of which no end is recorded.
type Command struct {
	ID      p.BackgroundID
	Command []string
	Since   time.Time
	Output  string // what it has printed since it went to the background, as far as it is recorded

	process tree.Identity
	far     bool // it runs on another machine, as far as its owner says
}

// Running reports whether it runs. If not, its fermata died; opening the
// conversation records that.
func (c Command) Running() bool { return c.far || tree.Running(c.process) }

// PID is that of its process.
func (c Command) PID() int {
	if pid := tree.CommandPID(c.process); pid != 0 {
		return pid
	}
	return c.process.PID
}

// List returns the background commands of a conversation, whoever runs it.
func List(ctx context.Context, e Conversations, id p.ConversationID) ([]Command, error) {
	var t transcript.Transcript
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		t.Apply(ev)
	}
	owner, open, err := e.Owner(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []Command
	for _, b := range t.Running {
		it := t.Item(b.ID.Item().String())
		c := Command{ID: b.ID, Command: b.Command, Since: it.Start, Output: it.Output, far: open && owner.Node != "" && !owner.IsHere()}
		_ = json.Unmarshal(b.Process, &c.process) // without it, it counts as gone
		list = append(list, c)
	}
	return list, nil
}

// Find returns the background command with a number.
func Find(list []Command, id p.BackgroundID) (Command, error) {
	for _, c := range list {
		if c.ID == id {
			return c, nil
		}
	}
	return Command{}, notFound(id)
}

func notFound(id p.BackgroundID) error {
	return &hint.Error{Err: fmt.Errorf("background command %d: %w", id, engine.ErrNoBackground), Hint: "fermata ps ID lists those that run"}
}

// Kill ends a command through its supervisor: whoever runs the conversation
// sees it end and records that. If none does, opening it ends what is left.
func Kill(ctx context.Context, e Conversations, id p.ConversationID, c Command) error {
	if c.far {
		return killFar(ctx, e, id, c)
	}
	notified, err := tree.End(c.process)
	if notified || err != nil {
		return err
	}
	_, err = e.Resume(ctx, id)
	if errors.As(err, new(*engine.LockedError)) || errors.As(err, new(*remote.UnresponsiveError)) {
		return notFound(c.ID) // it has ended, and its owner is about to say so
	}
	if err != nil {
		return err
	}
	return e.Shutdown(ctx)
}

// lookAgain is how often killFar looks whether a command has ended.
const lookAgain = 20 * time.Millisecond

// killFar has the owner on another machine end a command, and returns when it has.
func killFar(ctx context.Context, e Conversations, id p.ConversationID, c Command) error {
	_, err := e.Submit(ctx, id, p.KillBackground{ID: c.ID})
	if errors.Is(err, engine.ErrNoBackground) {
		return notFound(c.ID)
	}
	for err == nil {
		var snap p.Snapshot
		snap, err = e.Resume(ctx, id)
		if err == nil && !slices.ContainsFunc(snap.Background, func(b p.BackgroundStarted) bool { return b.ID == c.ID }) {
			break
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.Join(err, e.Shutdown(ctx))
}
