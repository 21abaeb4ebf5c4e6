package items

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// applyTurn takes an event of the turn that runs.
func (f *Fold) applyTurn(e p.Event) {
	t := f.cur
	t.shown.Apply(e)
	switch b := e.Body.(type) {
	case *p.UserMessage:
		f.userMessage(e, b)
	case *p.InputReturned:
		t.returned = append(t.returned, returnedInput(b.Inputs)...)
	case *p.ModelRequested:
		if t.summary = 0; b.Compact {
			t.summary = b.Response
			f.compacting(e)
		}
	case *p.Compacted:
		f.compacted(e)
	case *p.Delta:
		f.delta(e, b)
	case *p.AssistantMessage:
		f.finishText(e, b.Item.String())
	case *p.Reasoning:
		if b.Text != "" || t.byID[b.Item.String()] != nil {
			f.finishText(e, b.Item.String())
		}
	case *p.ModelEnded:
		if b.Usage != nil {
			f.usage, f.last = f.usage.Add(*b.Usage), *b.Usage
			f.note("thread/tokenUsage/updated", f.usageUpdated(t.id))
		}
	case *p.ModelRetry:
		f.failure(wire.TurnError{Message: fmt.Sprintf("Reconnecting... %d/%d", b.Attempt, b.Max), AdditionalDetails: text(b.Reason)}, true)
	case *p.Held:
		f.failure(wire.TurnError{Message: transcript.HoldText(b), CodexErrorInfo: errorInfo(b.Error.Kind)}, true)
	case *p.TurnDiff:
		f.note("turn/diff/updated", wire.DiffUpdated{ThreadID: f.thread(), TurnID: t.name, Diff: b.Diff})
	case *p.PlanUpdated:
		f.note("turn/plan/updated", planUpdated(f.thread(), t.name, b))
	case *p.TurnEnded:
		f.end(e, b)
	default:
		f.applyCall(e)
	}
}

func (f *Fold) failure(err wire.TurnError, retry bool) {
	f.note("error", wire.Failure{ThreadID: f.thread(), TurnID: f.cur.name, Error: err, WillRetry: retry})
}

func planUpdated(thread, turn string, b *p.PlanUpdated) wire.PlanUpdated {
	out := wire.PlanUpdated{ThreadID: thread, TurnID: turn, Explanation: text(b.Explanation), Plan: []wire.PlanStep{}}
	for _, s := range b.Plan {
		out.Plan = append(out.Plan, wire.PlanStep{Step: s.Step, Status: strings.ReplaceAll(s.Status, "in_progress", "inProgress")})
	}
	return out
}

// start adds an item and says so.
func (f *Fold) start(e p.Event, it *item) {
	f.cur.items = append(f.cur.items, it)
	f.cur.byID[it.id] = it
	if it.start = e.Time; it.start.IsZero() { // pieces of a text have none
		it.start = f.Updated
	}
	var shown wire.Item
	if it.isText() {
		shown = it.empty()
	} else {
		shown = f.form(it, nil)
	}
	f.note("item/started", wire.ItemStarted{ThreadID: f.thread(), TurnID: f.cur.name, Item: shown, StartedAtMs: it.start.UnixMilli()})
}

// finish ends an item and says so.
func (f *Fold) finish(e p.Event, it *item, of wire.Item) {
	it.of, it.done, it.end = of, true, e.Time
	it.shown, it.tail = nil, ""
	f.note("item/completed", wire.ItemCompleted{ThreadID: f.thread(), TurnID: f.cur.name, Item: of, CompletedAtMs: e.Time.UnixMilli()})
}

func (f *Fold) userMessage(e p.Event, b *p.UserMessage) {
	t := f.cur
	if f.Preview == "" {
		f.Preview = p.PlainText(b.Content)
	}
	if t.shell {
		return // the command itself is an item
	}
	id := "u" + b.Item.String()
	it := &item{id: id, of: wire.Item{Of: wire.UserMessage{Type: "userMessage", ID: id, ClientID: text(b.Ref), Content: Inputs(b.Content)}}}
	if what, ok := strings.CutPrefix(b.Ref, reviewRef); ok {
		t.review = what
		it.of = wire.Item{Of: wire.ReviewMode{Type: "enteredReviewMode", ID: id, Review: what}}
	}
	f.start(e, it)
	f.finish(e, it, it.of)
}

// Inputs is content in the form in which clients send it.
func Inputs(content []p.Content) []wire.UserInput {
	list := []wire.UserInput{}
	for _, c := range content {
		if c.Type == p.ContentImage {
			list = append(list, wire.UserInput{Type: "image", URL: c.ImageURL})
			continue
		}
		list = append(list, wire.TextInput(c.Text))
	}
	return list
}

// compacting begins a compaction, unless one goes on.
func (f *Fold) compacting(e p.Event) {
	if f.cur.compact != nil {
		return
	}
	id := fmt.Sprintf("c%d", e.Seq)
	f.cur.compact = &item{id: id, of: wire.Item{Of: wire.ContextCompaction{Type: "contextCompaction", ID: id}}}
	f.start(e, f.cur.compact)
}

func (f *Fold) compacted(e p.Event) {
	if it := f.cur.compact; it != nil {
		f.cur.compact = nil
		f.finish(e, it, it.of)
	}
}

// delta adds to a text or to what a command has printed.
func (f *Fold) delta(e p.Event, d *p.Delta) {
	t := f.cur
	if t.summary != 0 && d.Item.Response == t.summary {
		return // a summary is for the model
	}
	id := d.Item.String()
	it := t.byID[id]
	switch {
	case it == nil && (d.Kind == p.DeltaMessage || d.Kind == p.DeltaReasoning):
		it = &item{id: id, shown: t.shown.Item(id)}
		f.start(e, it)
		if d.Kind == p.DeltaReasoning {
			f.note("item/reasoning/summaryPartAdded", wire.SummaryPart{ThreadID: f.thread(), TurnID: t.name, ItemID: id})
		}
	case it == nil || it.done:
		return
	}
	more := whole(it, d.Text)
	if more == "" || !f.live {
		return
	}
	f.note(t.delta(f, it, more))
}

// whole returns what of a piece, and of what was kept of the piece before, makes whole characters.
func whole(it *item, more string) string {
	more = it.tail + more
	it.tail = ""
	for n := 1; n < utf8.UTFMax && n <= len(more); n++ {
		last := more[len(more)-n:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				it.tail = last
				return more[:len(more)-n]
			}
			break
		}
	}
	return more
}

// delta is the notification of a piece of an item.
func (t *turn) delta(f *Fold, it *item, more string) (string, any) {
	switch it.shown.Kind {
	case transcript.Message:
		return "item/agentMessage/delta", wire.Delta{ThreadID: f.thread(), TurnID: t.name, ItemID: it.id, Delta: more}
	case transcript.Reasoning:
		return "item/reasoning/summaryTextDelta", wire.SummaryDelta{ThreadID: f.thread(), TurnID: t.name, ItemID: it.id, Delta: more}
	}
	return "item/commandExecution/outputDelta", wire.Delta{ThreadID: f.thread(), TurnID: t.name, ItemID: it.id, Delta: more}
}

// finishText ends a message or reasoning.
func (f *Fold) finishText(e p.Event, id string) {
	it := f.cur.byID[id]
	if it == nil {
		it = &item{id: id, shown: f.cur.shown.Item(id)}
		f.start(e, it)
	}
	if !it.done {
		f.finish(e, it, it.textForm())
	}
}

// end ends the turn. The engine has ended every item by now but a compaction; the rest is for safety.
func (f *Fold) end(e p.Event, b *p.TurnEnded) {
	t := f.cur
	f.compacted(e)
	for _, it := range slices.Clone(t.items) {
		switch {
		case it.done:
		case it.isText():
			f.finish(e, it, it.textForm())
		default:
			f.finish(e, it, f.form(it, &p.ToolOutput{Aborted: true}))
		}
	}
	for _, a := range f.asks {
		f.note("serverRequest/resolved", wire.RequestResolved{ThreadID: f.thread(), RequestID: a.note.Ask})
	}
	f.asks = nil
	last := t.lastMessage()
	if t.review != "" {
		it := &item{id: fmt.Sprintf("v%d", t.id), of: wire.Item{Of: wire.ReviewMode{Type: "exitedReviewMode", ID: fmt.Sprintf("v%d", t.id), Review: last.text()}}}
		f.start(e, it)
		f.finish(e, it, it.of)
	}
	ended := t.ended(e, b)
	if b.Reason == p.Failed {
		f.failure(*ended.Error, false)
		f.setStatus(wire.SystemError)
	} else {
		f.setStatus(wire.Idle)
	}
	summary := ended
	if summary.Items, summary.ItemsView = []wire.Item{}, "notLoaded"; last != nil && b.Reason == p.Completed {
		summary.Items, summary.ItemsView = []wire.Item{last.of}, "summary"
	}
	f.note("turn/completed", wire.TurnChanged{ThreadID: f.thread(), Turn: summary})
	f.cur, f.over = nil, e.Turn
	if !f.live {
		f.Ends[e.Turn] = e.Seq
		ended.Items = t.list(f)
		f.turns = append(f.turns, ended)
	}
}

func (t *turn) lastMessage() *item {
	for _, it := range slices.Backward(t.items) {
		if _, ok := it.of.Of.(wire.AgentMessage); ok {
			return it
		}
	}
	return nil
}

func (it *item) text() string {
	if it == nil {
		return ""
	}
	m, _ := it.of.Of.(wire.AgentMessage)
	return m.Text
}

var statuses = map[p.EndReason]string{p.Completed: "completed", p.Failed: "failed"}

func (t *turn) ended(e p.Event, b *p.TurnEnded) wire.Turn {
	out := t.wire("interrupted", "full", nil)
	at, took := e.Time.Unix(), b.Elapsed.Milliseconds()
	out.CompletedAt, out.DurationMs, out.ReturnedInput = &at, &took, t.returned
	if s := statuses[b.Reason]; s != "" {
		out.Status = s
	} else {
		out.AbortReason = string(b.Reason)
	}
	if b.Reason == p.Failed {
		out.Error = &wire.TurnError{Message: "the turn failed", CodexErrorInfo: "other"}
		if b.Error != nil {
			out.Error = &wire.TurnError{Message: b.Error.Message, CodexErrorInfo: errorInfo(b.Error.Kind), AdditionalDetails: text(b.Error.Hint)}
		}
	}
	return out
}

// infos are the names that clients know for errors.
var infos = map[p.ErrorKind]string{
	p.ErrorModel: "internalServerError", p.ErrorAuth: "unauthorized", p.ErrorUsageLimit: "usageLimitExceeded",
	p.ErrorRateLimit: "rateLimitExceeded", p.ErrorContextLength: "contextWindowExceeded", p.ErrorUnknownModel: "modelNotFound",
	p.ErrorRequest: "badRequest", p.ErrorHistory: "badRequest",
}

func errorInfo(k p.ErrorKind) any {
	if k == p.ErrorConnection {
		return map[string]any{"responseStreamDisconnected": map[string]any{"httpStatusCode": nil}}
	}
	if name := infos[k]; name != "" {
		return name
	}
	return "other"
}
