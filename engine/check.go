package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/replay"
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
		f := &follower{engine: l, id: id, events: replay.New(yield)}
		b := beside{follower: f, view: v}
		if err := b.read(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(p.Event{}, err)
		}
	}
}

// Tail is Read that continues from a cursor: what another process appends is passed on as it
// comes, until ctx ends.
func (l *Local) Tail(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		v, err := l.view(ctx, id)
		if err != nil {
			yield(p.Event{}, err)
			return
		}
		defer v.Close()
		events := replay.New(yield)
		for source := v.Follow(uint64(after)); ; {
			recs, chunks, err := source.Next(ctx)
			if err != nil {
				yield(p.Event{}, err)
				return
			}
			if !events.Add(recs, chunks) {
				return
			}
		}
	}
}

// Owner returns the process that has a conversation open, if one has.
func (l *Local) Owner(ctx context.Context, id p.ConversationID) (Owner, bool, error) {
	return l.storeOf(id).Owner(ctx, string(id))
}

// A Report is what Check found.
type Report struct {
	ID       p.ConversationID `json:"id"`
	Events   int              `json:"events"`
	Turns    p.TurnID         `json:"turns"`
	Problems []string         `json:"problems"` // one line each; none if all is well
	Lost     []string         `json:"lost"`     // what was damaged and set aside, and what follows from it

	// NeverBegun says that whoever created it was killed before its first event was recorded, so that nobody
	// can know of it.
	NeverBegun bool `json:"never_begun,omitempty"`
}

// Check reads a whole conversation and says which promises are not kept. It
// repairs nothing. What goes on in a conversation that somebody has open is no
// problem.
func (l *Local) Check(ctx context.Context, id p.ConversationID) (Report, error) {
	r := Report{ID: id, Problems: []string{}, Lost: []string{}}
	if err := l.check(ctx, id, &r); err != nil {
		return r, fmt.Errorf("check conversation %s: %w", id, err)
	}
	return r, nil
}

func (l *Local) check(ctx context.Context, id p.ConversationID, r *Report) error {
	store := l.storeOf(id)
	_, before, err := store.Owner(ctx, string(id))
	if err != nil {
		return err
	}
	v, err := store.View(ctx, string(id))
	if err != nil {
		return err
	}
	faults, err := v.Check(ctx)
	v.Close()
	if err != nil {
		return err
	}
	var c fsck.Checker
	if err := l.apply(ctx, id, &c, func(e p.Event) bool {
		r.Events++
		r.Turns = max(r.Turns, e.Turn)
		return true
	}); err != nil {
		return err
	}
	_, after, err := store.Owner(ctx, string(id))
	if err != nil {
		return err
	}
	running := before || after
	if r.NeverBegun = !running && r.Events == 0 && l.neverBegun(ctx, id, faults); r.NeverBegun {
		return nil
	}
	for i, f := range faults {
		if running && f.AtEnd && i == len(faults)-1 {
			continue
		}
		r.Problems = append(r.Problems, describeFault(f))
	}
	problems := c.EndRunning
	if !running {
		problems = c.End
	}
	for _, problem := range problems() {
		to := &r.Problems
		if problem.Lost {
			to = &r.Lost
		}
		*to = append(*to, problem.String())
	}
	return nil
}

// createTime is longer than it takes to record the first event of a conversation.
const createTime = time.Minute

// neverBegun reports whether a conversation without events was being created when its process was killed: at most
// the first event is there, unfinished, and nothing has changed since. One that was emptied later is damaged.
func (l *Local) neverBegun(ctx context.Context, id p.ConversationID, faults []journal.Fault) bool {
	for _, f := range faults {
		if !f.AtEnd {
			return false
		}
	}
	in, err := l.storeOf(id).Stat(ctx, string(id))
	return err == nil && in.Modified.Sub(id.Time()).Abs() < createTime
}

func describeFault(f journal.Fault) string {
	if f.Line == 0 {
		return "file: " + f.Text
	}
	return fmt.Sprintf("line %d: file: %s", f.Line, f.Text)
}

// apply checks the events of a conversation, and calls then after each, until
// that returns false.
func (l *Local) apply(ctx context.Context, id p.ConversationID, c *fsck.Checker, then func(p.Event) bool) error {
	for e, err := range l.Read(ctx, id) {
		if err != nil {
			return err
		}
		if e.Seq == 0 {
			continue
		}
		c.Apply(e)
		if !then(e) {
			return nil
		}
	}
	return nil
}

// Repair repairs a conversation's file, sets aside events that do not follow from
// those before, as two writers leave them, then opens the conversation, which ends
// what a crash left open, and closes it again.
func (l *Local) Repair(ctx context.Context, id p.ConversationID) ([]string, error) {
	store := l.storeOf(id)
	found, err := store.Repair(ctx, string(id))
	if err != nil {
		return nil, err
	}
	words := conversation.DescribeRecovery(found)
	good, bad, err := l.lastGood(ctx, id)
	if err != nil {
		return words, err
	}
	if good > 0 && bad > 0 {
		if err := store.SetAside(ctx, string(id), uint64(good)); err != nil {
			return words, err
		}
		words = append(words, fmt.Sprintf("events from %d on did not follow from those before (event %d) and were set aside", good+1, bad))
	}
	snap, err := l.Resume(ctx, id)
	if err != nil {
		return words, err
	}
	return append(words, snap.Recovered...), l.Release(ctx, id)
}

// lastGood returns the first event that does not follow from those before, or 0,
// and the last one before it after which nothing ran.
func (l *Local) lastGood(ctx context.Context, id p.ConversationID) (good, bad p.Seq, err error) {
	var c fsck.Checker
	err = l.apply(ctx, id, &c, func(e p.Event) bool {
		for _, problem := range c.Problems {
			if !problem.Lost {
				bad = problem.Seq
				return false
			}
		}
		if c.Idle() {
			good = e.Seq
		}
		return true
	})
	return good, bad, err
}
