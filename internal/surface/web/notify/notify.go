// Package notify reports to people who do not look: that an approval is asked, a turn is held or has ended, a crash was
// recovered. It follows the conversations in which something goes on, whichever process runs them, and sends what
// happens since it began to a webhook and to browsers (Web Push).
//
// Start with [Run].
package notify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Message is what is sent.
type Message struct {
	Type         string           `json:"type"` // approval_requested, held, turn_ended, crash_recovered
	Conversation p.ConversationID `json:"conversation"`
	Title        string           `json:"title"`
	Cwd          string           `json:"cwd"`
	Turn         p.TurnID         `json:"turn"`
	Time         time.Time        `json:"time"`
	Text         string           `json:"text"`                 // for people
	Reason       p.EndReason      `json:"reason,omitempty"`     // how the turn ended
	Call         *p.CallID        `json:"call,omitempty"`       // that is to be approved
	Command      []string         `json:"command,omitempty"`    // likewise
	URL          string           `json:"url"`                  // the page
	AnswerURL    string           `json:"answer_url,omitempty"` // where this one approval can be answered, without a session

	seq p.Seq
}

// ID names the message: it is the same if it is sent again.
func (m Message) ID() string { return fmt.Sprintf("%s-%d", m.Conversation, m.seq) }

// Options are what to notify with.
type Options struct {
	Engine engine.Engine
	Lobby  *live.Lobby
	Access *access.Store
	Origin string // of the page
	Hook   *Webhook
	Push   *Push // nil is none
	Failed func(error)

	Panicked panics.Log // keeps the trace of what panicked; may be nil
}

// Run notifies until ctx ends.
func Run(ctx context.Context, o Options) { newNotifier(o).run(ctx) }

// newNotifier makes one that notifies of what happens from now on.
func newNotifier(o Options) *notifier {
	return &notifier{Options: o, since: time.Now(), follows: map[p.ConversationID]*follow{}, events: make(chan happened)}
}

func (n *notifier) run(ctx context.Context) {
	queue := make(chan Message, 256) // a webhook that is slow delays others, not conversations
	sent := make(chan struct{})
	go func() { // ends with ctx
		defer close(sent)
		n.send(ctx, queue)
	}()
	defer func() { <-sent }()
	rows := make(chan live.Rows)
	go n.watch(ctx, rows) // ends with ctx
	for {
		select {
		case r := <-rows:
			n.see(ctx, r.Rows)
		case h := <-n.events:
			if err := n.Panicked.Run(func() { n.happened(h, queue) }); err != nil {
				n.Failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// happened queues what people want to know of an event.
func (n *notifier) happened(h happened, queue chan<- Message) {
	m, ok := n.message(h)
	if !ok {
		return
	}
	select {
	case queue <- m:
	default:
		n.Failed(fmt.Errorf("a notification is lost: too many wait"))
	}
}

type notifier struct {
	Options
	since   time.Time
	follows map[p.ConversationID]*follow
	events  chan happened
}

// A follow is a conversation that is, or was, followed.
type follow struct {
	row    live.Row
	cursor p.Cursor
	cancel context.CancelFunc // nil while nothing goes on in it
	ended  time.Time          // when its last turn ended
}

type happened struct {
	following context.Context // ends when the conversation is not followed any more
	id        p.ConversationID
	event     p.Event
	err       error
}

func (n *notifier) watch(ctx context.Context, rows chan<- live.Rows) {
	var ver uint64
	for {
		r, err := n.Lobby.Next(ctx, ver)
		if err != nil {
			return
		}
		ver = r.Ver
		select {
		case rows <- r:
		case <-ctx.Done():
			return
		}
	}
}

// linger is how long a conversation is followed after its turn has ended.
const linger = time.Minute

// see follows conversations in which something goes on.
func (n *notifier) see(ctx context.Context, rows []live.Row) {
	for _, row := range rows {
		f := n.follows[row.ID]
		if f == nil {
			f = &follow{}
			n.follows[row.ID] = f
		}
		changed := !row.Updated.Equal(f.row.Updated) && row.Updated.After(n.since)
		f.row = row
		switch over := row.Phase == "ended" || row.Phase == "new"; {
		case f.cancel == nil && (changed || !over):
			to, cancel := context.WithCancel(ctx)
			f.cancel = cancel
			go n.tryFollow(to, row.ID, f.cursor) // ends with its context
		case f.cancel != nil && over && !changed && !f.ended.IsZero() && time.Since(f.ended) > linger:
			f.cancel()
			f.cancel = nil
		}
	}
}

// tryFollow follows a conversation. A panic is the end of that.
func (n *notifier) tryFollow(ctx context.Context, id p.ConversationID, after p.Cursor) {
	err := n.Panicked.Run(func() { n.follow(ctx, id, after) })
	if err == nil {
		return
	}
	select {
	case n.events <- happened{following: ctx, id: id, err: err}:
	case <-ctx.Done():
	}
}

func (n *notifier) follow(ctx context.Context, id p.ConversationID, after p.Cursor) {
	for e, err := range n.Engine.Subscribe(ctx, id, after) {
		if _, delta := e.Body.(*p.Delta); delta {
			continue
		}
		select {
		case n.events <- happened{ctx, id, e, err}:
		case <-ctx.Done():
			return
		}
	}
}

// message says what people want to know of an event. What was before we began they know.
func (n *notifier) message(h happened) (Message, bool) {
	if h.following.Err() != nil { // it was on its way; whoever follows next gets it
		return Message{}, false
	}
	f := n.follows[h.id]
	if h.err != nil {
		f.cancel()
		f.cancel = nil
		return Message{}, false
	}
	e := h.event
	if e.Seq > f.cursor {
		f.cursor = e.Seq
	}
	f.ended = time.Time{}
	if _, ok := e.Body.(*p.TurnEnded); ok {
		f.ended = time.Now()
	}
	if e.Time.Before(n.since) {
		return Message{}, false
	}
	m := Message{
		Conversation: h.id, Title: safetext.ShowLine(f.row.Title), Cwd: f.row.Cwd, Turn: e.Turn, Time: e.Time, URL: n.Origin + "/#/c/" + string(h.id), seq: e.Seq,
	}
	switch b := e.Body.(type) {
	case *p.ApprovalRequested:
		m.Type, m.Call, m.Command = "approval_requested", &b.Call, b.Command
		m.Text = "Approval is asked: " + question(b)
	case *p.Held:
		m.Type, m.Text = "held", safetext.Clean(transcript.HoldText(b))
	case *p.TurnEnded:
		m.Type, m.Reason, m.Text = "turn_ended", b.Reason, "The turn "+string(b.Reason)
		switch {
		case b.Reason == p.Crashed:
			m.Type, m.Text = "crash_recovered", "The turn crashed; the conversation is saved and can be resumed"
		case b.Reason == p.Interrupted || b.Reason == p.Replaced:
			m.Text = "The turn was " + string(b.Reason)
		case b.Error != nil:
			m.Text += ": " + safetext.Clean(b.Error.Message)
		}
	default:
		return Message{}, false
	}
	return m, true
}

func question(b *p.ApprovalRequested) string {
	switch {
	case b.Kind == p.ApprovePatch:
		return "changes to files"
	case b.MCP != nil:
		return safetext.ShowLine(b.MCP.Server + " " + b.MCP.Name)
	}
	return p.CutMiddle(safetext.Show(strings.TrimSpace(transcript.CommandLine(b.Command))), 300)
}

// send sends what is queued, one after the other.
func (n *notifier) send(ctx context.Context, queue <-chan Message) {
	for {
		select {
		case m := <-queue:
			if err := n.Panicked.Run(func() { n.deliver(ctx, m) }); err != nil {
				n.Failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (n *notifier) deliver(ctx context.Context, m Message) {
	if n.Push != nil {
		if err := n.Push.send(ctx, n.Access, m); err != nil && ctx.Err() == nil {
			n.Failed(err)
		}
	}
	if n.Hook == nil {
		return
	}
	if m.Call != nil {
		code, err := n.Access.NewAnswer(m.Conversation, *m.Call)
		if err != nil {
			n.Failed(err)
		} else {
			m.AnswerURL = n.Origin + "/answer/" + code
		}
	}
	if err := n.Hook.send(ctx, m); err != nil && ctx.Err() == nil {
		n.Failed(err)
	}
}
