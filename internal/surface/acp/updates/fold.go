// Package updates turns the events of a conversation into the updates of a session. A [Fold] is fed every event from the first.
// Until [Fold.Live] it returns each turn when that has ended, each thing in it once and in its final state; from then on it
// returns what each event changes. So what is replayed and what follows are made by one fold: together they are the whole, without a
// gap and without a repetition.
//
// It is pure. What a call shows is [transcript.Transcript]'s; here it gets the form that clients know.
package updates

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options say what a client can show, and what is known of models.
type Options struct {
	Terminals  bool // the output of commands can be sent in increments
	Notices    bool // remarks can be sent as such
	Compaction bool // compactions too

	Own func(ref string) bool // a live message with this name came from the client, which shows it already

	// Changed returns the updates that say what is chosen now, Window how many tokens a model takes, Cost what some tokens cost in US dollars.
	Changed func(p.Settings) []any
	Window  func(p.Settings) int64
	Cost    func(p.Settings, p.Usage) (float64, bool)
}

// What a fold returns beside updates.
type (
	// An Ask says that a call waits for the user's permission.
	Ask struct {
		Call     p.CallID
		Approval *p.ApprovalRequested
		ToolCall wire.ToolCall
	}

	// A Question is one that an MCP server asks the user.
	Question struct{ *p.ElicitationRequested }

	// Resolved says that an Ask, or a Question if it has a number, is over.
	Resolved struct {
		Call   p.CallID
		Number int
	}

	// Delivered says that a message became part of a turn.
	Delivered struct {
		Ref  string
		Turn p.TurnID
	}

	// Returned says that a message was not delivered.
	Returned struct{ Ref string }

	// Ended says that a turn has ended.
	Ended struct {
		Turn p.TurnID
		End  p.TurnEnded
	}
)

// A Fold is what is known of a conversation.
type Fold struct {
	Settings p.Settings
	Seq      p.Seq    // the last event
	Over     p.TurnID // the last turn that has ended

	o     Options
	live  bool
	title string
	out   []any
	cur   *turn
	asks  []any // those that are open
	used  int64 // tokens of the last request with its response
	cost  float64
	cheap bool // the cost of something is not known
}

// A turn is one that runs.
type turn struct {
	id      p.TurnID
	shell   bool
	shown   transcript.Transcript
	sent    map[string]*sent
	waiting []string // calls whose output has grown since it was sent
	summary int      // the response that is a summary, for the model alone; 0 if none is
	compact string   // the compaction that goes on
}

// sent is what the client was sent of an item.
type sent struct {
	text  string // of a message
	call  wire.ToolCall
	grown strings.Builder // of a terminal: output that was not sent
}

// New makes a fold of a conversation of which nothing is known.
func New(o Options) *Fold { return &Fold{o: o} }

func (f *Fold) add(update any) { f.out = append(f.out, update) }

// Apply takes an event and returns what there is to send.
func (f *Fold) Apply(e p.Event) []any {
	f.out = nil
	if e.Seq != 0 && !e.Unsaved {
		f.Seq = e.Seq
	}
	if e.Turn != 0 && e.Turn <= f.Over {
		return nil // its end was not recorded, and it has ended once more
	}
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		f.Settings = b.Settings
	case *p.Configured:
		f.Settings = b.Settings
		if f.live {
			f.out = append(f.out, f.o.Changed(b.Settings)...)
		}
	case *p.Renamed:
		f.setTitle(b.Title, e.Time)
	case *p.TurnStarted:
		f.cur = &turn{id: e.Turn, shell: b.Shell, sent: map[string]*sent{}}
		f.apply(e)
	case *p.InputReturned:
		for _, in := range b.Inputs {
			f.add(Returned{in.Ref})
		}
		f.apply(e)
	default:
		f.apply(e)
	}
	return f.out
}

func (f *Fold) setTitle(title string, at time.Time) {
	if f.title = title; f.live {
		f.add(wire.InfoChanged{Update: "session_info_update", Title: title, UpdatedAt: at.UTC().Format(time.RFC3339)})
	}
}

// apply takes an event that may show something.
func (f *Fold) apply(e p.Event) {
	if f.cur == nil || e.Turn != 0 && e.Turn != f.cur.id {
		f.outside(e)
		return
	}
	f.before(e)
	changed := f.cur.shown.Apply(e)
	if f.live && !denied(e.Body) {
		for _, it := range changed {
			f.show(it, e)
		}
	}
	f.after(e)
}

// denied reports whether an event says that a call may not run: what it is answered comes next, and shows that.
func denied(b p.Body) bool {
	r, ok := b.(*p.ApprovalResolved)
	return ok && r.Decision != p.Approved && r.Decision != p.ApprovedForSession
}

// outside shows what belongs to no turn.
func (f *Fold) outside(e p.Event) {
	var none transcript.Transcript
	for _, it := range none.Apply(e) {
		if it.Kind == transcript.Notice {
			f.notice(it)
		}
	}
}

// before does what has to come before what an event shows.
func (f *Fold) before(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		if f.cur.summary = 0; b.Compact {
			f.cur.summary = b.Response
		}
	case *p.UserMessage:
		f.add(Delivered{b.Ref, e.Turn})
		if f.title == "" {
			line, _, _ := strings.Cut(strings.TrimSpace(p.Written(b.Content)), "\n")
			f.setTitle(line, e.Time)
		}
		if f.live && f.o.Own(b.Ref) {
			f.cur.sent["u"+b.Item.String()] = &sent{}
		}
	case *p.Delta:
		if f.o.Terminals && f.live && (b.Kind == p.DeltaStdout || b.Kind == p.DeltaStderr) {
			if s := f.cur.sent[b.Item.String()]; s != nil {
				s.grown.WriteString(b.Text)
			}
		}
	}
}

// after does what has to come after what an event shows.
func (f *Fold) after(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ApprovalRequested:
		f.ask(Ask{Call: b.Call, Approval: b})
	case *p.ElicitationRequested:
		f.ask(Question{b})
	case *p.ApprovalResolved:
		f.resolve(Resolved{b.Call, 0})
	case *p.ElicitationResolved:
		f.resolve(Resolved{b.Call, b.Number})
	case *p.ModelEnded:
		f.usage(b.Usage)
	case *p.TurnStarted:
		f.compaction(e, b.Compact)
	case *p.ModelRequested:
		f.compaction(e, b.Compact)
	case *p.Compacted:
		f.compacted("completed")
	case *p.TurnEnded:
		f.end(e, b)
	}
}

func (f *Fold) ask(a any) {
	f.asks = append(f.asks, a)
	if f.live {
		f.add(f.withCall(a))
	}
}

// withCall adds what is known of the call that asks.
func (f *Fold) withCall(a any) any {
	ask, ok := a.(Ask)
	if !ok {
		return a
	}
	if it := f.cur.shown.Item(ask.Call.String()); it != nil {
		ask.ToolCall = f.form(it)
	}
	return ask
}

func (f *Fold) resolve(r Resolved) {
	f.asks = slices.DeleteFunc(f.asks, func(a any) bool { return about(a) == r })
	if f.live {
		f.add(r)
	}
}

func about(a any) Resolved {
	switch a := a.(type) {
	case Ask:
		return Resolved{a.Call, 0}
	case Question:
		return Resolved{a.Call, a.Number}
	}
	return Resolved{}
}

// usage counts what a response has used.
func (f *Fold) usage(u *p.Usage) {
	if u == nil {
		return
	}
	f.used = u.Total
	if cost, ok := f.o.Cost(f.Settings, *u); ok {
		f.cost += cost
	} else {
		f.cheap = true
	}
	if f.live {
		f.addUsage()
	}
}

func (f *Fold) addUsage() {
	size := f.o.Window(f.Settings)
	if f.used == 0 || size == 0 {
		return
	}
	u := wire.Usage{Update: "usage_update", Used: f.used, Size: size}
	if f.cost > 0 && !f.cheap {
		u.Cost = &wire.Cost{Amount: f.cost, Currency: "USD"}
	}
	f.add(u)
}

// compaction begins one, unless one goes on.
func (f *Fold) compaction(e p.Event, begins bool) {
	if !begins || f.cur.compact != "" || !f.o.Compaction {
		return
	}
	f.cur.compact = "c" + e.Time.UTC().Format("20060102150405.000000000")
	f.add(wire.Compaction{Update: "compaction_update", ID: f.cur.compact, Status: "in_progress"})
}

func (f *Fold) compacted(status string) {
	if f.cur.compact != "" {
		f.add(wire.Compaction{Update: "compaction_update", ID: f.cur.compact, Status: status})
		f.cur.compact = ""
	}
}

// compactionEnds are the ends of a compaction by those of its turn.
var compactionEnds = map[p.EndReason]string{p.Failed: "failed", p.Completed: "completed"}

// end ends the turn.
func (f *Fold) end(e p.Event, b *p.TurnEnded) {
	status := compactionEnds[b.Reason]
	if status == "" {
		status = "cancelled"
	}
	f.showAll()
	f.compacted(status)
	f.asks = nil
	f.add(Ended{e.Turn, *b})
	f.cur, f.Over = nil, e.Turn
}

// showAll shows everything of the turn that was not shown.
func (f *Fold) showAll() {
	for _, it := range f.cur.shown.Items {
		f.show(it, p.Event{})
	}
	f.flush()
}

// Live ends the past, and returns what is still to be sent of it.
func (f *Fold) Live() []any {
	f.out = nil
	if f.cur != nil {
		f.showAll()
	}
	f.live = true
	f.addUsage()
	return f.out
}

// Controls returns those of a list that are no updates.
func Controls(list []any) []any {
	return slices.DeleteFunc(list, func(u any) bool {
		switch u.(type) {
		case Ask, Question, Resolved, Delivered, Returned, Ended:
			return false
		}
		return true
	})
}

// OpenCalls returns those of what Live returned that a client needs which is sent nothing of the past: the calls that are not over, since what
// happens to them comes next.
func (f *Fold) OpenCalls(list []any) []any {
	return slices.DeleteFunc(list, func(u any) bool {
		c, ok := u.(wire.ToolCall)
		return !ok || isOver(f.cur.sent[c.ID].call)
	})
}

// Open returns what the user has been asked and not answered.
func (f *Fold) Open() []any {
	var list []any
	for _, a := range f.asks {
		list = append(list, f.withCall(a))
	}
	return list
}

// Running reports whether a turn runs.
func (f *Fold) Running() bool { return f.cur != nil }

// Waits reports whether the output of a command is to be sent by Flush.
func (f *Fold) Waits() bool { return f.cur != nil && len(f.cur.waiting) > 0 }

// Flush returns the output of commands that was not sent yet.
func (f *Fold) Flush() []any {
	f.out = nil
	if f.cur != nil {
		f.flush()
	}
	return f.out
}

func (f *Fold) flush() {
	for _, id := range f.cur.waiting {
		if it := f.cur.shown.Item(id); it != nil {
			f.showCall(it)
		}
	}
	f.cur.waiting = nil
}

// whole returns text without the beginning of a character whose end has not come.
func whole(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}
