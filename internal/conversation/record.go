package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// step decides and records; acting waits until the record is durable.
func (o *owner) step(in turn.Input) {
	_ = o.stepErr(in) // only ops can be refused, and they ask
}

func (o *owner) stepErr(in turn.Input) error {
	bodies, err := o.state.Decide(o.env(), in)
	if err != nil || len(bodies) == 0 {
		return err
	}
	id := o.state.Turn
	if _, ok := bodies[0].(*p.TurnStarted); ok {
		id++
	} else if !o.state.Active {
		id = 0
	}
	o.record(id, bodies...)
	o.durable()
	return nil
}

func (o *owner) env() turn.Env {
	return turn.Env{Now: time.Now(), ReadOnly: o.readOnly, Retries: o.budget, Full: o.full(), Wait: o.wait}
}

// record appends events to the journal as one batch and folds them.
func (o *owner) record(id p.TurnID, bodies ...p.Body) {
	entries := make([]journal.Entry, len(bodies))
	for i, b := range bodies {
		data, err := json.Marshal(b)
		if err != nil {
			panic(fmt.Sprintf("encode %s event: %v", p.Kind(b), err)) // our own types: a defect
		}
		entries[i] = journal.Entry{Turn: int(turnOf(id, b)), Kind: p.Kind(b), Body: data, Closes: closes(id, b)}
		o.grown += int64(len(data))
	}
	seq := p.Seq(o.journal.Append(entries...)) - p.Seq(len(bodies))
	now := time.Now()
	for _, b := range bodies {
		seq++
		o.fold(p.Event{Seq: seq, Time: now, Turn: turnOf(id, b), Body: b})
		o.prepare(b)
		if acted(b) {
			o.acts = append(o.acts, act{seq, b})
		}
	}
}

// turnOf is the turn an event belongs to if turn id is running. Background
// commands belong to none.
func turnOf(id p.TurnID, b p.Body) p.TurnID {
	switch b.(type) {
	case *p.BackgroundStarted, *p.BackgroundEnded:
		return 0
	}
	return id
}

// closes names the open items that an event finishes.
func closes(id p.TurnID, b p.Body) string {
	switch b := b.(type) {
	case *p.AssistantMessage:
		return b.Item.String()
	case *p.Reasoning:
		return b.Item.String()
	case *p.ToolOutput:
		return b.Call.String()
	case *p.BackgroundEnded:
		return b.ID.Item().String()
	case *p.ModelEnded:
		return fmt.Sprintf("%d.%d.", id, b.Response)
	case *p.TurnEnded:
		return fmt.Sprintf("%d.", id)
	}
	return ""
}

// fold takes an event into the state. It is all that replay does.
func (o *owner) fold(e p.Event) {
	o.last = e.Seq
	o.state = o.state.Evolve(e)
	o.history.Apply(e)
	o.foldPatch(e.Body)
	o.foldSummary(e)
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		o.id, o.settings = b.ID, b.Settings
	case *p.Configured:
		o.settings = b.Settings
	case *p.Renamed:
		o.title = b.Title
	case *p.TurnStarted:
		o.now = o.settings // what changes meanwhile is for the next
	case *p.ModelEnded:
		if b.Usage != nil {
			o.usage = o.usage.Add(*b.Usage)
			o.size = b.Usage.Total
		}
	case *p.Compacted:
		o.size = 0
	case *p.Notice:
		if b.Warn {
			o.warned[b.Text] = true
		}
	case *p.ApprovalRequested:
		o.asked[b.Call] = b
	case *p.ToolOutput:
		delete(o.asked, b.Call)
	case *p.TurnEnded:
		o.ended = b.Reason
	}
}

// durable acts on what has become durable, and tells those who waited for it.
func (o *owner) durable() {
	n, err := o.journal.Durable()
	if err != nil && o.failed == nil {
		o.fail(err)
		return
	}
	for len(o.acts) > 0 && o.acts[0].seq <= p.Seq(n) {
		a := o.acts[0]
		o.acts = o.acts[1:]
		o.act(a)
	}
	for len(o.replies) > 0 && o.replies[0].seq <= p.Seq(n) {
		r := o.replies[0]
		o.replies = o.replies[1:]
		r.tell(o.failed)
	}
}

// fail ends the turn because nothing can be recorded any more. What was
// recorded and not acted upon is not done.
func (o *owner) fail(err error) {
	o.failed = fmt.Errorf("this conversation can no longer be recorded: %w", err)
	_ = o.stepErr(turn.Stop{Reason: p.Failed, Error: &p.Error{
		Kind: p.ErrorJournal, Message: o.failed.Error(),
		Hint: "make room or fix the disk, then resume; what was recorded before is safe",
	}})
	o.endBackground()
	o.durable()
}
