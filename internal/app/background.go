package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Job is a background command of which no end is recorded.
type Job struct {
	ID      p.BackgroundID
	Command []string
	Since   time.Time
	Output  string // what it has printed since it went to the background, as far as it is recorded

	process tree.Identity
}

// Running reports whether it runs. If not, its fermata died; opening the
// conversation records that.
func (j Job) Running() bool { return tree.Running(j.process) }

// PID is that of its process.
func (j Job) PID() int {
	if pid := tree.CommandPID(j.process); pid != 0 {
		return pid
	}
	return j.process.PID
}

// Jobs returns the background commands of a conversation, whoever runs it.
func Jobs(ctx context.Context, e Conversations, id p.ConversationID) ([]Job, error) {
	var t transcript.Transcript
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		t.Apply(ev)
	}
	var list []Job
	for _, b := range t.Running {
		it := t.Item(b.ID.Item().String())
		j := Job{ID: b.ID, Command: b.Command, Since: it.Start, Output: it.Output}
		_ = json.Unmarshal(b.Process, &j.process) // without it, it counts as gone
		list = append(list, j)
	}
	return list, nil
}

// FindJob returns the background command with a number.
func FindJob(list []Job, id p.BackgroundID) (Job, error) {
	for _, j := range list {
		if j.ID == id {
			return j, nil
		}
	}
	return Job{}, noJob(id)
}

func noJob(id p.BackgroundID) error {
	return &Error{Err: fmt.Errorf("background command %d: %w", id, engine.ErrNoBackground), Hint: "fermata ps ID lists those that run"}
}

// KillJob ends a command through its supervisor: whoever runs the conversation
// sees it end and records that. If nobody does, opening it ends what is left.
func KillJob(ctx context.Context, e Conversations, id p.ConversationID, j Job) error {
	notified, err := tree.End(j.process)
	if notified || err != nil {
		return err
	}
	_, err = e.Resume(ctx, id)
	if errors.As(err, new(*engine.LockedError)) || errors.As(err, new(*remote.UnresponsiveError)) {
		return noJob(j.ID) // it has ended, and its owner is about to say so
	}
	if err != nil {
		return err
	}
	return e.Shutdown(ctx)
}
