package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// step decides and records; effects wait until the record is durable.
func (o *owner) step(in turn.Input) {
	_ = o.stepErr(in) // only ops can be refused, and they ask
}

func (o *owner) stepErr(in turn.Input) error {
	events, err := o.decide(in)
	if err == nil {
		o.commit(events)
	}
	return err
}

// decide returns the events that follow from an input.
func (o *owner) decide(in turn.Input) ([]p.Event, error) { return o.state.Decide(o.env(), in) }

// decideWith is decide for an input that comes with settings, nil if they do not change: they are recorded
// before what follows from it, in the same batch.
func (o *owner) decideWith(settings *p.Configured, in turn.Input) ([]p.Event, error) {
	if settings == nil {
		return o.decide(in)
	}
	env := o.env()
	env.Room = o.requestRoom(settings.Settings)
	events, err := o.state.Decide(env, in)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return slices.Concat(outsideTurn(settings), events), nil
}

// commit records what was decided as one batch.
func (o *owner) commit(events []p.Event) {
	if len(events) > 0 {
		o.record(events...)
		o.recorded()
	}
}

// recorded deals with the effects of what was recorded.
func (o *owner) recorded() {
	o.dropEffects()
	o.durable()
}

// sumUp makes the end of a turn say what the conversation has taken so far.
func (o *owner) sumUp(events []p.Event) {
	used := o.state.Usage
	for _, e := range events {
		switch b := e.Body.(type) {
		case *p.ModelEnded:
			if b.Usage != nil {
				used = used.Add(*b.Usage)
			}
		case *p.TurnEnded:
			if used != (p.Usage{}) {
				b.Usage = &used
			}
		}
	}
}

func (o *owner) env() turn.Env {
	return turn.Env{
		Now: time.Now(), Lane: o.lane, MaxParallel: o.cfg.MaxParallel, Retries: o.retries, Wait: o.wait,
		MaxWait: o.cfg.MaxWait, OnLimit: o.state.TurnSettings.OnLimit, Room: o.requestRoom(o.state.SettingsNow()),
	}
}

// record appends events to the journal as one batch and folds them.
func (o *owner) record(events ...p.Event) {
	o.sumUp(events)
	entries := make([]journal.Entry, len(events))
	for i, e := range events {
		data, err := json.Marshal(e.Body)
		if err != nil {
			panic(fmt.Sprintf("encode %s event: %v", p.Kind(e.Body), err)) // our own types: a defect
		}
		entries[i] = journal.Entry{Turn: int(e.Turn), Kind: p.Kind(e.Body), Body: data, Closes: closes(e)}
		o.unsavedBytes += int64(len(data))
	}
	seq := p.Seq(o.journal.Append(entries...)) - p.Seq(len(events))
	now := time.Now()
	for _, e := range events {
		seq++
		e.Seq, e.Time = seq, now
		o.state.Evolve(e)
		o.prepare(e.Body)
		o.queueEffect(e)
	}
}

// recordOutsideTurn records an event that belongs to no turn.
func (o *owner) recordOutsideTurn(b p.Body) { o.record(outsideTurn(b)...) }

// closes names the open items that an event finishes.
func closes(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.AssistantMessage:
		return b.Item.String()
	case *p.Reasoning:
		return b.Item.String()
	case *p.ToolOutput:
		return b.Call.String()
	case *p.BackgroundEnded:
		return b.ID.Item().String()
	case *p.ModelEnded:
		return fmt.Sprintf("%d.%d.", e.Turn, b.Response)
	case *p.TurnEnded:
		return fmt.Sprintf("%d.", e.Turn)
	}
	return ""
}

// durable carries out what has become durable, and answers those who waited for it.
func (o *owner) durable() {
	n, err := o.journal.Durable()
	if err != nil && o.failed == nil {
		o.fail(err)
		return
	}
	for len(o.effects) > 0 && o.effects[0].seq <= p.Seq(n) {
		e := o.effects[0]
		o.effects = o.effects[1:]
		e.carryOut()
	}
	for len(o.replies) > 0 && (o.replies[0].seq <= p.Seq(n) || o.failed != nil) { // nothing will be durable any more
		r := o.replies[0]
		o.replies = o.replies[1:]
		r.answer(o.failed)
	}
}

// fail ends the turn because nothing can be recorded any more. Effects that
// were not carried out are dropped.
func (o *owner) fail(err error) {
	o.failed = fmt.Errorf("this conversation can no longer be recorded: %w", err)
	_ = o.stepErr(turn.Stop{Reason: p.Failed, Error: &p.Error{
		Kind: p.ErrorJournal, Message: o.failed.Error(),
		Hint: "make room or fix the disk, then resume; what was recorded before is safe",
	}})
	o.endBackground()
	o.durable()
}
