// Package items turns the events of a conversation into the threads, turns and items of the app-server. A [Fold]
// is fed every event from the first. Until [Fold.Live] it keeps the whole history, for an answer; from then on it says
// what to send for each event, and keeps only the turn that runs. So an answer and what is sent after it are made by one
// fold: together they are the whole, without a gap and without a repetition.
//
// It is pure. What a call or a command shows is [transcript.Transcript]'s; here it gets the form that clients know.
package items

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Note is something to send: a notification, or, if it has an Ask, a request with that id.
type Note struct {
	Method string
	Params any
	Ask    string

	Approval *p.ApprovalRequested // what is asked for; nil if that is not an approval
}

// A Fold is what is known of a conversation.
type Fold struct {
	ID       p.ConversationID
	Settings p.Settings
	Title    string
	Preview  string // the first message
	Forked   *p.ForkPoint
	Updated  time.Time
	Seq      p.Seq // the last event
	Ends     map[p.TurnID]p.Seq

	live     bool
	notes    []Note
	turns    []wire.Turn // that have ended, until it is live
	cur      *turn       // that runs
	over     p.TurnID    // the last one that has ended
	usage    p.Usage     // of all turns
	last     p.Usage     // of the last request
	status   wire.ThreadStatus
	returned []p.ReturnedInput // messages that were not delivered
	asks     []ask
}

// An ask is an approval that no client has given or refused, or a question that no client has answered.
type ask struct {
	call        p.CallID
	elicitation int // which question of an MCP server it is; 0: an approval
	note        Note
}

// New makes a fold of a conversation of which nothing is known.
func New(id p.ConversationID) *Fold {
	return &Fold{ID: id, status: wire.Idle, Ends: map[p.TurnID]p.Seq{}}
}

// Returned are the messages of the thread that were not delivered, and not sent, taken or dropped since.
func (f *Fold) Returned() []wire.ReturnedInput {
	return returnedInput(transcript.Undelivered(f.returned))
}

func returnedInput(list []p.ReturnedInput) (out []wire.ReturnedInput) {
	for _, in := range list {
		out = append(out, wire.ReturnedInput{ID: int(in.Input), ClientID: text(in.Ref), Input: Inputs(in.Content)})
	}
	return out
}

// Status is what the thread is doing.
func (f *Fold) Status() wire.ThreadStatus { return f.status }

// Running returns the turn that runs, 0 if none does.
func (f *Fold) Running() p.TurnID {
	if f.cur == nil {
		return 0
	}
	return f.cur.id
}

func (f *Fold) thread() string { return string(f.ID) }

func (f *Fold) note(method string, params any) {
	if f.live {
		f.notes = append(f.notes, Note{Method: method, Params: params})
	}
}

func (f *Fold) setStatus(s wire.ThreadStatus) {
	if f.status.Type == s.Type && flags(f.status) == flags(s) {
		return
	}
	f.status = s
	f.note("thread/status/changed", wire.StatusChanged{ThreadID: f.thread(), Status: s})
}

func flags(s wire.ThreadStatus) string {
	if s.ActiveFlags == nil {
		return ""
	}
	return strings.Join(*s.ActiveFlags, " ")
}

// Apply takes an event and returns what to send about it, nothing until Live.
func (f *Fold) Apply(e p.Event) []Note {
	f.notes = nil
	if e.Seq != 0 && !e.Unsaved {
		f.Seq = e.Seq
	}
	if !e.Time.IsZero() {
		f.Updated = e.Time
	}
	if e.Turn != 0 && e.Turn <= f.over {
		return nil // its end was not recorded, and it has ended once more
	}
	f.returned = transcript.Returned(f.returned, e.Body)
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		f.Settings, f.Forked = b.Settings, b.Fork
	case *p.Configured:
		f.Settings = b.Settings
		f.note("thread/settings/updated", wire.SettingsUpdated{ThreadID: f.thread(), Settings: Settings(b.Settings)})
	case *p.Renamed:
		f.Title = b.Title
		f.note("thread/name/updated", wire.NameUpdated{ThreadID: f.thread(), ThreadName: text(b.Title)})
	case *p.Reverted:
		f.turns = slices.DeleteFunc(f.turns, func(t wire.Turn) bool {
			n, ok := ParseTurn(f.ID, t.ID)
			return ok && n >= b.Before
		})
		f.note("thread/reverted", wire.ThreadRef{ThreadID: f.thread()})
	case *p.Notice:
		if b.Warn {
			f.warn(b.Text)
		}
	case *p.Damaged:
		f.warn("a record could not be read; its bytes are in " + b.File)
	case *p.TurnStarted:
		f.begin(e, b)
	default:
		if f.cur != nil && e.Turn == f.cur.id {
			f.applyTurn(e)
		}
	}
	return f.notes
}

func (f *Fold) warn(message string) {
	f.note("warning", wire.Warning{ThreadID: text(f.thread()), Message: message})
}

// text is a text that is null when it is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (f *Fold) begin(e p.Event, b *p.TurnStarted) {
	f.cur = &turn{id: e.Turn, name: TurnName(f.ID, e.Turn), started: e.Time, shell: b.Shell, byID: map[string]*item{}}
	f.setStatus(wire.Active())
	f.note("turn/started", wire.TurnChanged{ThreadID: f.thread(), Turn: f.cur.wire("inProgress", "notLoaded", []wire.Item{})})
	f.cur.shown.Apply(e)
	if b.Compact {
		f.compacting(e)
	}
}

// Live ends the history: what Apply is given from now on is returned as something to send. Turns returns nothing of the past any more.
func (f *Fold) Live() { f.live, f.turns = true, nil }

// Turns returns every turn, the one that runs last. A message that is not finished is not among its
// items: Resend gives it.
func (f *Fold) Turns() []wire.Turn {
	turns := append([]wire.Turn{}, f.turns...)
	if f.cur != nil {
		turns = append(turns, f.cur.wire("inProgress", "full", f.cur.list(f)))
	}
	return turns
}

// Resend returns what a client that has Turns has to be sent to be where everybody else is: the text so far of messages
// that are not finished, how many tokens were used, and the approvals that are open.
func (f *Fold) Resend() []Note {
	var list []Note
	add := func(method string, params any) { list = append(list, Note{Method: method, Params: params}) }
	if f.cur != nil {
		for _, it := range f.cur.items {
			if !it.isText() || it.done {
				continue
			}
			add("item/started", wire.ItemStarted{ThreadID: f.thread(), TurnID: f.cur.name, Item: it.empty(), StartedAtMs: it.start.UnixMilli()})
			if sofar := strings.TrimSuffix(it.shown.Text, it.tail); sofar != "" {
				add(f.cur.delta(f, it, sofar))
			}
		}
	}
	if f.usage.Total > 0 {
		turn := f.over
		if f.cur != nil {
			turn = f.cur.id
		}
		add("thread/tokenUsage/updated", f.usageUpdated(turn))
	}
	for _, a := range f.asks {
		list = append(list, a.note)
	}
	return list
}

func (f *Fold) usageUpdated(turn p.TurnID) wire.UsageUpdated {
	u := wire.ThreadTokenUsage{Total: usage(f.usage), Last: usage(f.last)}
	if f.Settings.ContextWindow > 0 {
		u.ModelContextWindow = &f.Settings.ContextWindow
	}
	return wire.UsageUpdated{ThreadID: f.thread(), TurnID: TurnName(f.ID, turn), TokenUsage: u}
}

func usage(u p.Usage) wire.TokenUsage {
	return wire.TokenUsage{
		TotalTokens: u.Total, InputTokens: u.Input, CachedInputTokens: u.Cached, CacheWriteInputTokens: u.CacheWrite,
		OutputTokens: u.Output, ReasoningOutputTokens: u.Reasoning,
	}
}

// A turn is one that runs.
type turn struct {
	id       p.TurnID
	name     string
	started  time.Time
	shell    bool // it runs a command of the user's own
	shown    transcript.Transcript
	items    []*item // that have started, in order
	byID     map[string]*item
	summary  int    // the response that is a summary; 0 if none is
	compact  *item  // the compaction that goes on
	review   string // what is reviewed, if that is what the turn is for
	returned []wire.ReturnedInput
}

func (t *turn) wire(status, view string, list []wire.Item) wire.Turn {
	started := t.started.Unix()
	return wire.Turn{
		ID: t.name, RootTurnID: &t.name, Items: list, ItemsView: view, Status: status, StartedAt: &started,
	}
}

// list is the items of the turn, without texts that are not finished.
func (t *turn) list(f *Fold) []wire.Item {
	list := []wire.Item{}
	for _, it := range t.items {
		switch {
		case it.done:
			list = append(list, it.of)
		case !it.isText():
			list = append(list, f.form(it, nil))
		}
	}
	return list
}

// Started is a turn that has been accepted, for the answer to a request that starts one.
func Started(id p.ConversationID, n p.TurnID) wire.Turn {
	name := TurnName(id, n)
	return wire.Turn{ID: name, RootTurnID: &name, Items: []wire.Item{}, ItemsView: "notLoaded", Status: "inProgress"}
}
