// Package undo restores the files that a turn changed: from what its patches kept of them, and from the
// snapshots of a git repository.
package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Conversations are what an undo needs of them.
type Conversations interface {
	Resume(ctx context.Context, id p.ConversationID) (p.Snapshot, error)
	Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error)
	Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error]
}

// An Undo is what restoring a turn's files would do.
type Undo struct {
	Turn  p.TurnID
	Files int      // how many would change; 0 if they are what they were
	Diff  string   // what would change
	Notes []string // what will not be restored

	Do func(context.Context) error // restores them

	home string
}

// Plan works out what undoing a turn would do; turn 0 is the last one that
// changed files. Nothing is changed before Do is called. Snapshots are below home.
func Plan(ctx context.Context, e Conversations, home string, id p.ConversationID, turn p.TurnID) (*Undo, error) {
	snap, err := e.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	if snap.Active {
		return nil, notYet(snap)
	}
	log, err := readChanges(ctx, e, id)
	if err != nil {
		return nil, err
	}
	t, err := log.choose(turn)
	if err != nil {
		return nil, err
	}
	u := &Undo{Turn: t.Turn, home: home}
	plan, err := u.plan(ctx, t, log.kept(t))
	if err != nil {
		return nil, undoRefused(t, log, err)
	}
	u.Files, u.Diff = len(plan.Files), plan.Diff(snap.Settings.Cwd)
	u.Do = func(ctx context.Context) error {
		err := tool.PutBack(ctx, patch.OS{}, plan, t.Turn, func(op p.Undo) error {
			_, err := e.Submit(ctx, id, op)
			return err
		})
		if err != nil {
			return fmt.Errorf("undo turn %d: %w", t.Turn, err)
		}
		return nil
	}
	return u, nil
}

// notYet says why nothing can be undone while a turn has not ended, and how to end it.
func notYet(snap p.Snapshot) error {
	stop := fmt.Sprintf("fermata interrupt %s interrupts it", snap.ID)
	switch {
	case len(snap.PendingApprovals) > 0:
		return &hint.Error{
			Err:  fmt.Errorf("turn %d is waiting for approval; undo works when it has ended", snap.Turn),
			Hint: fmt.Sprintf("fermata approve %s answers it, %s", snap.ID, stop),
		}
	case snap.Hold != nil:
		return &hint.Error{Err: fmt.Errorf("turn %d waits for a limit of the model service; undo works when it has ended", snap.Turn), Hint: stop}
	}
	return &hint.Error{Err: fmt.Errorf("turn %d is running; undo works when it has ended", snap.Turn), Hint: "wait, or " + stop}
}

// Snapshots are those of a home.
func Snapshots(home string) *tool.Snapshots {
	return &tool.Snapshots{Dir: filepath.Join(home, "snapshots"), Secret: secrets.Home(home).Registered}
}

// plan works out what has to be done: what is in snapshots from those, the rest
// from what the patches kept.
func (u *Undo) plan(ctx context.Context, t transcript.TurnChanges, kept []json.RawMessage) (*patch.Plan, error) {
	if t.Trees == nil {
		if t.Commands > 0 {
			u.note("turn %d also ran commands; what they changed is not undone", t.Turn)
		}
		return tool.TakeBack(patch.OS{}, kept, nil)
	}
	b, err := Snapshots(u.home).TakeBack(ctx, *t.Trees)
	if err != nil {
		return nil, err
	}
	rest, err := tool.TakeBack(patch.OS{}, kept, b.Covered)
	if err != nil {
		return nil, err
	}
	for _, path := range b.Modes {
		u.note("the mode of %s is not restored", path)
	}
	if t.Commands > 0 {
		u.note("what the commands of turn %d changed outside %s, or where git ignores it, is not undone", t.Turn, t.Trees.Root)
	}
	return patch.Combine(b.Plan, rest), nil
}

func (u *Undo) note(format string, args ...any) {
	u.Notes = append(u.Notes, fmt.Sprintf(format, args...))
}

// undoRefused says why nothing is restored.
func undoRefused(t transcript.TurnChanges, log *changeLog, err error) error {
	e := &hint.Error{Err: fmt.Errorf("turn %d was not undone: %w", t.Turn, err)}
	var stale *tool.ChangedSinceError
	if errors.As(err, &stale) {
		e.Hint = "save or undo the later changes, then try again"
		if last := log.LastChanged(); last > t.Turn {
			e.Hint = fmt.Sprintf("turn %d changed files later: undo that one first, if it is the reason", last)
		}
	}
	return e
}

// A changeLog is what the turns of a conversation did to files, and what their
// patches kept of the files before.
type changeLog struct {
	transcript.Transcript
	back     map[p.Seq]json.RawMessage // by the PatchStarted
	last     p.TurnID
	imported p.TurnID // the last turn that was had with another agent
}

func (l *changeLog) apply(e p.Event) {
	l.Apply(e)
	l.last = max(l.last, e.Turn)
	switch b := e.Body.(type) {
	case *p.PatchStarted:
		l.back[e.Seq] = b.Back
	case *p.Imported:
		l.imported = b.Turns
	}
}

func readChanges(ctx context.Context, e Conversations, id p.ConversationID) (*changeLog, error) {
	log := &changeLog{back: map[p.Seq]json.RawMessage{}}
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		log.apply(ev)
	}
	return log, nil
}

// kept returns what the patches of a turn kept, in order.
func (l *changeLog) kept(t transcript.TurnChanges) (list []json.RawMessage) {
	for _, seq := range t.Patches {
		list = append(list, l.back[seq])
	}
	return list
}

// choose finds the turn to undo.
func (l *changeLog) choose(turn p.TurnID) (transcript.TurnChanges, error) {
	if turn > l.last {
		return transcript.TurnChanges{}, fmt.Errorf("there is no turn %d; the last one is %d", turn, l.last)
	}
	if turn == 0 {
		turn = l.LastChanged()
	}
	if turn == 0 {
		return transcript.TurnChanges{}, fmt.Errorf("there is no turn whose changes to files can be undone%s", l.why())
	}
	t := l.ChangesOf(turn)
	switch {
	case turn <= l.imported:
		return t, fmt.Errorf("turn %d cannot be undone: it was imported from another agent", turn)
	case t.Gap:
		return t, fmt.Errorf("turn %d cannot be undone: files were changed while it waited for an approval", turn)
	case t.Undone:
		return t, fmt.Errorf("turn %d was already undone", turn)
	case !t.Changed() && t.Commands > 0 && t.Trees == nil:
		return t, fmt.Errorf("turn %d cannot be undone: only its commands may have changed files, and no snapshot was taken", turn)
	case !t.Changed():
		return t, fmt.Errorf("turn %d changed no files", turn)
	}
	return t, nil
}

// why says what there is that cannot be undone.
func (l *changeLog) why() string {
	if l.imported > 0 {
		return "; what turns of another agent changed cannot be undone"
	}
	if slices.ContainsFunc(l.Changes, func(t *transcript.TurnChanges) bool { return t.Commands > 0 && !t.Undone }) {
		return "; what commands changed cannot be undone without a snapshot"
	}
	return ""
}
