package client

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Conversation is what is known of the one on the screen. Its state is the fold of its events; the rest is what
// the user of this program did in it.
type Conversation struct {
	ID         p.ConversationID       // empty until the first message
	Transcript *transcript.Transcript // what is shown of it
	Feed       *Feed                  // nil if it is not followed
	Found      engine.Snapshot        // as it was when it was opened
	Last       p.Seq                  // the last event seen
	From       p.Cursor               // what is up to here is not loaded
	Approvals  []*transcript.Item     // that are open, oldest first
	Questions  []*transcript.Item     // calls whose MCP servers ask something, oldest first
	PutOff     QuestionID             // the question that the user wants to answer later
	Context    int64                  // tokens that the last request and its response took
	Ended      p.EndReason            // of the last turn
	Planning   bool                   // the current turn, or the last one, was begun in plan mode
	Proposed   bool                   // it was the last one, and completed: there is a plan to accept
	Loading    *atomic.Uint64         // how far the earlier part is read; nil if it is not being read

	answered          map[p.CallID]bool   // approvals, by this user
	answeredQuestions map[QuestionID]bool // by this user
	base              p.Usage             // of what is not loaded
	stopLoad          context.CancelFunc
}

// A QuestionID names a question of an MCP server in its conversation. The zero value names none.
type QuestionID struct {
	call   p.CallID
	number int
}

// QuestionIDOf is the name of a question.
func QuestionIDOf(q *p.ElicitationRequested) QuestionID { return QuestionID{q.Call, q.Number} }

func newConversation(id p.ConversationID, snap engine.Snapshot, after p.Cursor) Conversation {
	return Conversation{
		ID: id, Transcript: &transcript.Transcript{Settings: snap.Settings, Title: snap.Title, Completions: true}, Found: snap,
		Last: after, From: after, answered: map[p.CallID]bool{}, answeredQuestions: map[QuestionID]bool{},
	}
}

// CaughtUp reports whether everything that was there when the conversation was opened has been seen.
func (t *Conversation) CaughtUp() bool { return t.Last >= t.Found.Last }

// Usage is that of the whole conversation.
func (t *Conversation) Usage() p.Usage { return t.base.Add(t.Transcript.Usage) }

// Percent is how far the earlier part of the conversation is read.
func (t *Conversation) Percent() int { return int(100 * t.Loading.Load() / max(1, uint64(t.Last))) }

// Apply folds an event, and returns the items that are new or have changed.
func (t *Conversation) Apply(e p.Event) []*transcript.Item {
	before, caught := t.Transcript.Usage, t.CaughtUp()
	items := t.Transcript.Apply(e)
	for _, it := range items {
		t.index(it)
	}
	if e.Seq != 0 {
		t.Last = e.Seq
	}
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		t.Planning, t.Proposed = t.Transcript.Settings.Plan && !b.Shell, false
	case *p.TurnEnded:
		t.Ended = b.Reason
		t.Proposed = t.Planning && b.Reason == p.Completed
	}
	if now := t.Transcript.Usage; now != before {
		t.Context = now.Input - before.Input + now.Output - before.Output
	}
	if !caught && t.CaughtUp() && t.From > 0 { // what is not loaded counts too
		t.base = t.Found.Usage.Sub(t.Transcript.Usage)
		t.Transcript.Running, t.Transcript.Returned = slices.Clone(t.Found.Background), slices.Clone(t.Found.Returned)
	}
	return items
}

// index notices whether an item asks for something.
func (t *Conversation) index(it *transcript.Item) {
	t.Approvals = keepIf(t.Approvals, it, it.Status == transcript.Asking)
	t.Questions = keepIf(t.Questions, it, len(it.Questions) > 0)
}

// keepIf adds an item to a list, or takes it out.
func keepIf(list []*transcript.Item, it *transcript.Item, keep bool) []*transcript.Item {
	i := slices.Index(list, it)
	switch {
	case keep && i < 0:
		return append(list, it)
	case !keep && i >= 0:
		return slices.Delete(list, i, i+1)
	}
	return list
}

// NextApproval is the first open approval that the user has not answered; nil if there is none.
func (t *Conversation) NextApproval() *transcript.Item {
	for _, it := range t.Approvals {
		if !t.HasAnswered(it) {
			return it
		}
	}
	return nil
}

// HasAnswered reports whether the user of this program has answered an approval.
func (t *Conversation) HasAnswered(it *transcript.Item) bool {
	call, err := p.ParseItemID(it.ID)
	return err == nil && t.answered[call]
}

// Question is the first open question of an MCP server that the user has not answered; nil if there is none.
func (t *Conversation) Question() *p.ElicitationRequested {
	for _, it := range t.Questions {
		for _, q := range it.Questions {
			if !t.answeredQuestions[QuestionIDOf(q)] {
				return q
			}
		}
	}
	return nil
}

// Waits reports whether the turn waits for an answer of the user.
func (t *Conversation) Waits() bool {
	return t.Transcript.Active && (len(t.Approvals) > 0 || t.Question() != nil)
}

// stopFollowing ends what is read of the conversation.
func (t *Conversation) stopFollowing() {
	if t.Feed != nil {
		t.Feed.Stop()
	}
	if t.stopLoad != nil {
		t.stopLoad()
	}
}
