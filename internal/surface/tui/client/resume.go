package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Source is where conversations are opened.
type Source struct {
	Engine engine.Engine // that opens them
	// Overrides are what differs from the conversation's settings. May be nil.
	Overrides func(p.Settings) p.Overrides
	Shown     func(p.ConversationID) // called when it is open
	Owner     func(pid int) string   // what a process is, in words; may be nil
}

// An Opened is a conversation that is open.
type Opened struct {
	Snapshot engine.Snapshot // as it was found
	After    p.Cursor        // from which it is loaded at first
	Gone     error           // its directory no longer exists
}

// Open resumes a conversation. The error is a *HeldError if another process has it.
func (s Source) Open(ctx context.Context, id p.ConversationID) (Opened, error) {
	snap, err := s.Engine.Resume(ctx, id)
	if err != nil {
		return Opened{}, s.held(err)
	}
	s.Shown(id)
	dir, err := s.override(ctx, snap)
	if err != nil {
		return Opened{}, err
	}
	after, err := tail(ctx, s.Engine, id, snap.Last)
	return Opened{snap, after, app.CheckResumed(dir)}, err
}

// A HeldError says who has a conversation open.
type HeldError struct {
	Who  string // which process
	What string // its command line, if that is known
	err  error
}

func (e *HeldError) Error() string { return e.err.Error() }
func (e *HeldError) Unwrap() error { return e.err }

func (s Source) held(err error) error {
	var locked *engine.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	who, what := "another process", ""
	if locked.PID != 0 {
		who = fmt.Sprintf("process %d", locked.PID)
	}
	if locked.PID != 0 && s.Owner != nil {
		what = s.Owner(locked.PID)
	}
	return &HeldError{who, what, err}
}

// override applies what differs, and returns the directory to work in.
func (s Source) override(ctx context.Context, snap engine.Snapshot) (dir string, err error) {
	if s.Overrides == nil {
		return snap.Settings.Cwd, nil
	}
	over := s.Overrides(snap.Settings)
	settings := over.Apply(snap.Settings)
	if reflect.DeepEqual(settings, snap.Settings) {
		return settings.Cwd, nil
	}
	_, err = s.Engine.Submit(ctx, snap.ID, p.Configure{Overrides: over})
	return settings.Cwd, err
}

// TailEvents is how much of a long conversation is loaded at first. A screen
// shows a few dozen, and each may be large.
const TailEvents = 300

// tail returns the cursor from which a conversation is loaded at first: its
// beginning, or that of a turn near its end.
func tail(ctx context.Context, e engine.Engine, id p.ConversationID, last p.Seq) (p.Cursor, error) {
	for n := p.Seq(TailEvents); n < last; n *= 4 {
		for ev, err := range e.Subscribe(ctx, id, last-n) {
			if err != nil {
				return 0, err
			}
			if _, ok := ev.Body.(*p.TurnStarted); ok {
				return ev.Seq - 1, nil
			}
			if ev.Seq >= last {
				break // not even the beginning of the last turn
			}
		}
	}
	return 0, nil
}

// A Loaded is the whole of a conversation of which a part was shown.
type Loaded struct {
	Transcript *transcript.Transcript // of all its events up to To
	To         p.Seq                  // its last event
}

// Load folds a conversation from its beginning up to an event. at is how far it has come.
func Load(ctx context.Context, e engine.Engine, id p.ConversationID, to p.Seq, at *atomic.Uint64) (Loaded, error) {
	out := Loaded{Transcript: &transcript.Transcript{Completions: true}}
	for ev, err := range e.Subscribe(ctx, id, 0) {
		if err != nil {
			return out, err
		}
		if ev.Seq == 0 {
			continue // a delta: it comes again
		}
		out.Transcript.Apply(ev)
		out.To = ev.Seq
		at.Store(uint64(ev.Seq))
		if ev.Seq >= to {
			break
		}
	}
	return out, nil
}

// Explain is an error for the user, with what to do about it.
func Explain(err error) string {
	var held *HeldError
	switch {
	case errors.As(err, &held):
		text := "open in " + held.Who
		if held.What != "" {
			text += " (" + safetext.Cut(held.What, 24) + ")"
		}
		return text + ": use it there, or close it first" // in all, one line of a small screen
	case errors.Is(err, engine.ErrNotFound):
		return "that conversation was not found"
	case errors.Is(err, engine.ErrBusy):
		return "not while a turn runs: stop it first (Esc)"
	case errors.Is(err, engine.ErrClosed):
		return "the conversation was closed"
	}
	return err.Error()
}
