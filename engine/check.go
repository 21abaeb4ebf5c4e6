package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/fsck"
	p "github.com/fermata-agent/fermata/protocol"
)

// Read gives the events of a conversation as they are recorded now, then what
// there is of open items as deltas. It takes no lock, opens nothing, repairs nothing: a
// conversation that another process has open can be read too.
func (l *Local) Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		v, err := l.view(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		defer v.Close()
		f := &follower{engine: l, id: id, events: newEvents(yield)}
		b := beside{follower: f, view: v}
		if err := b.read(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(p.Event{}, err)
		}
	}
}

// Tail is Read that continues: what another process appends is given as it comes,
// until ctx ends.
func (l *Local) Tail(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		v, err := l.view(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		defer v.Close()
		events := newEvents(yield)
		for source := v.Follow(0); ; {
			recs, chunks, err := source.Next(ctx)
			if err != nil {
				yield(p.Event{}, err)
				return
			}
			if !events.give(recs, chunks) {
				return
			}
		}
	}
}

// A Report is what Check found.
type Report struct {
	ID       p.ConversationID `json:"id"`
	Events   int              `json:"events"`
	Turns    p.TurnID         `json:"turns"`
	Problems []string         `json:"problems"` // one line each; none if all is well
	Lost     []string         `json:"lost"`     // what was damaged and set aside, and what follows from it
}

// Check reads a whole conversation and says which promises are not kept. It
// repairs nothing.
func (l *Local) Check(ctx context.Context, id p.ConversationID) (Report, error) {
	r := Report{ID: id, Problems: []string{}, Lost: []string{}}
	v, err := l.view(ctx, id)
	if err != nil {
		return r, fmt.Errorf("check conversation %s: %w", id, err)
	}
	faults, err := v.Check(ctx)
	v.Close()
	if err != nil {
		return r, fmt.Errorf("check conversation %s: %w", id, err)
	}
	for _, f := range faults {
		r.Problems = append(r.Problems, fmt.Sprintf("line %d: file: %s", f.Line, f.Text))
	}
	var c fsck.Checker
	for e, err := range l.Read(ctx, id) {
		if err != nil {
			return r, fmt.Errorf("check conversation %s: %w", id, err)
		}
		if e.Seq == 0 {
			continue
		}
		c.Apply(e)
		r.Events++
		r.Turns = max(r.Turns, e.Turn)
	}
	for _, problem := range c.End() {
		to := &r.Problems
		if problem.Lost {
			to = &r.Lost
		}
		*to = append(*to, problem.String())
	}
	return r, nil
}

// Repair repairs a conversation's file, then opens the conversation, which
// ends what a crash left open, and closes it again.
func (l *Local) Repair(ctx context.Context, id p.ConversationID) ([]string, error) {
	found, err := l.store.Repair(ctx, string(id))
	if err != nil {
		return nil, err
	}
	snap, err := l.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	return append(conversation.DescribeRecovery(found), snap.Recovered...), l.Release(ctx, id)
}
