package fold

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// A walk makes a random journal: package turn decides what follows from random
// inputs, and what tools and clients record comes between.
type walk struct {
	t     testing.TB
	r     *rand.Rand
	state *State
	log   []p.Event
}

func newWalk(t testing.TB, seed uint64) *walk {
	w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 1)), state: New()}
	w.record(&p.ConversationStarted{ID: "c", Settings: p.Settings{Cwd: "/w", UserInstructions: pick(w.r, "", "be kind")}})
	return w
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// event records an event as a journal would give it back.
func (w *walk) event(e p.Event) {
	data, err := json.Marshal(e.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if e.Body, err = p.DecodeBody(p.Kind(e.Body), data); err != nil {
		w.t.Fatal(err)
	}
	if b, ok := e.Body.(p.Caused); ok && w.r.IntN(3) == 0 {
		b.SetCause(p.Cause{Client: "c", Op: fmt.Sprint(w.r.IntN(200))})
	}
	e.Seq = p.Seq(len(w.log) + 1)
	e.Time = time.Date(2026, 1, 2, 3, 4, len(w.log), 5000, time.UTC)
	w.log = append(w.log, e)
	w.state.Evolve(e)
}

func (w *walk) record(b p.Body) { w.event(p.Event{Body: b}) }

func (w *walk) recordInTurn(b p.Body) { w.event(p.Event{Turn: w.state.Turn, Body: b}) }

func (w *walk) input(in turn.Input) {
	env := turn.Env{
		Now: time.Date(2026, 1, 2, 3, 4, len(w.log), 0, time.UTC), Retries: func() turn.Retries { return turn.Retries{Request: 2, Stream: 2} }, Room: turn.Room{Size: func(...[]p.Content) int64 { return 100 }, Window: int64(w.r.IntN(10)+1) * 100, Grown: true, Keep: int64(w.r.IntN(2)) * 50, LocalSummary: func() string { return "local" }},
		OnLimit: pick(w.r, p.OnLimitHold, p.OnLimitResume, p.OnLimitFail),
		Wait:    func(int, *p.Error) time.Duration { return time.Second },
		Lane: func(c turn.Call) turn.Lane {
			if c.Name == "look" {
				return turn.Beside
			}
			return turn.Alone
		}, MaxParallel: 3,
	}
	events, err := w.state.Decide(env, in)
	if err != nil {
		return // refused: nothing happens
	}
	for _, e := range events {
		w.event(e)
	}
}

func (w *walk) step() {
	switch {
	case w.r.IntN(12) == 0:
		w.beside()
	case !w.state.Active:
		w.idle()
	case w.r.IntN(6) == 0:
		w.client()
	default:
		w.worker()
	}
}

// beside is what can happen at any time.
func (w *walk) beside() {
	switch w.r.IntN(7) {
	case 6:
		if n := len(w.state.Returned); n > 0 {
			ids := []p.InputID{w.state.Returned[w.r.IntN(n)].Input}
			w.input(pick[turn.Input](w.r, turn.Resolve{Inputs: ids, As: p.ResolvedTaken}, turn.User{Returned: ids}))
		}
	case 0:
		w.record(&p.Configured{Settings: p.Settings{Cwd: fmt.Sprint("/", w.r.IntN(3)), Approval: p.ApprovalNever, ContextWindow: pick[int64](w.r, 1000, 10), Model: pick(w.r, "", "", "m")}})
	case 1:
		w.record(&p.Renamed{Title: fmt.Sprint("title ", len(w.log))})
	case 2:
		w.record(&p.Notice{Text: fmt.Sprint("notice ", w.r.IntN(5)), Warn: w.r.IntN(2) == 0})
	case 3:
		w.record(&p.Damaged{Bytes: 10})
	case 4:
		w.input(turn.BackgroundDone{ID: p.BackgroundID(1 + w.r.IntN(3)), Stopped: w.r.IntN(2) == 0, Result: p.CommandResult{Killed: 1}})
	case 5:
		if w.r.IntN(4) == 0 {
			w.input(turn.Lost{Crash: w.r.IntN(2) == 0, Killed: 1})
		}
	}
}

func (w *walk) idle() {
	if len(w.state.Pending) > 0 && w.r.IntN(2) == 0 {
		w.input(turn.Next{})
		return
	}
	patch := fmt.Sprint("undo", w.r.IntN(3))
	switch w.r.IntN(16) {
	case 0:
		w.input(turn.Compact{})
	case 1, 2:
		w.input(turn.Shell{Command: "ls"})
	case 3:
		if w.state.Turn > w.state.History.Compacted() {
			w.record(&p.Reverted{Before: w.state.Turn})
		}
	case 4:
		w.record(&p.PatchStarted{Patch: patch, Undoes: w.state.Turn, Record: json.RawMessage(`{"r":1}`)})
	case 5:
		w.record(&p.PatchCommitted{Patch: patch})
	case 6:
		w.record(pick[p.Body](w.r, &p.Undone{Of: 1, Patch: patch, Files: []string{"a"}}, &p.PatchSettled{Patch: patch, Applied: true}))
	case 7:
		w.input(turn.ReturnAll{})
	default:
		w.input(turn.User{Content: p.Text(strings.Repeat("x", pick(w.r, 0, 0, 100)) + fmt.Sprint("m", len(w.log)))})
	}
}

func (w *walk) client() {
	switch w.r.IntN(8) {
	case 0, 1, 2:
		over := &p.Overrides{}
		w.input(turn.User{Ref: "r", Content: p.Text("more"), WhenBusy: pick(w.r, "", p.Steer, p.Queue, p.Replace), Overrides: pick(w.r, nil, over)})
	case 3, 4:
		w.input(turn.Stop{Reason: pick(w.r, p.Interrupted, p.Failed), Error: pick(w.r, nil, &p.Error{Kind: p.ErrorModel, Message: "gone"})})
	case 5:
		w.input(turn.Edit{Input: w.state.LastInput, Content: p.Text("edited")})
	case 6:
		w.input(turn.Delete{Input: w.state.LastInput})
	case 7:
		w.input(pick[turn.Input](w.r, turn.RetryDue{}, turn.HoldDue{}, turn.TryNow{}, turn.TryNow{Settings: &p.Settings{Cwd: "/w", Model: "other"}}))
	}
}

// worker is what the model, the tools and those who approve do.
func (w *walk) worker() {
	s := w.state
	for _, id := range s.PendingApprovals() {
		if w.r.IntN(3) == 0 {
			w.input(turn.Approval{Call: id, Decision: pick(w.r, p.Approved, p.ApprovedForSession, p.Denied, p.Abort), Message: "no"})
			return
		}
	}
	if s.Streaming {
		w.model()
		return
	}
	for _, c := range s.Calls {
		if c.Stage == "running" && w.r.IntN(2) == 0 {
			w.tool(c.ID)
			return
		}
	}
	if w.r.IntN(4) == 0 {
		w.input(turn.RetryDue{})
	}
	if w.r.IntN(20) == 0 {
		w.input(turn.Stop{}) // nothing else may be possible
	}
}

func (w *walk) model() {
	s := w.state
	index := len(s.Items)
	item := func(b p.Body) { w.input(turn.ModelItem{Response: s.Response, Index: index, Body: b}) }
	open := []turn.Partial{{Item: p.ItemID{Turn: s.Turn, Response: s.Response, Index: index}, Kind: p.DeltaMessage, Text: "half"}}
	switch w.r.IntN(9) {
	case 0:
		item(&p.Reasoning{Text: "hm", Raw: p.Raw{Wire: "x", JSON: json.RawMessage(`{"id":1}`)}})
	case 1, 2:
		item(&p.AssistantMessage{Text: fmt.Sprint("said ", len(w.log))})
	case 3, 4, 5:
		item(&p.ToolCall{WireID: fmt.Sprint("w", w.r.IntN(3)), Kind: p.CallFunction, Name: pick(w.r, "work", "look"), Arguments: `{"a":1}`})
	case 6:
		err := pick(w.r,
			&p.Error{Kind: p.ErrorConnection, Message: "broke", Retry: true},
			&p.Error{Kind: p.ErrorContextLength, Message: "too long", Window: int64(w.r.IntN(2)) * 5000},
			&p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: time.Hour},
			&p.Error{Kind: p.ErrorHistory, Message: "no images", Part: pick(w.r, p.PartReasoning, p.PartImages, p.PartOutputs)},
			&p.Error{Kind: p.ErrorHistory, Message: "no output", Call: &p.CallFault{WireID: fmt.Sprint("w", w.r.IntN(5)), Fault: p.CallWithoutOutput}})
		w.input(turn.ModelDone{Response: s.Response, Error: err, Open: pick(w.r, nil, open), Refused: w.refused(err)})
	default:
		w.input(turn.ModelDone{Response: s.Response, Summary: pick(w.r, "", "gist"), Usage: &p.Usage{Input: 5, Total: int64(w.r.IntN(1000))}, Open: pick(w.r, nil, nil, open)})
	}
}

func (w *walk) refused(err *p.Error) *turn.Refused {
	if err.Call == nil {
		return nil
	}
	id, answered, ok := w.state.History.Find(err.Call.WireID)
	if !ok {
		return nil
	}
	return &turn.Refused{Call: id, Answered: answered}
}

func (w *walk) tool(id p.CallID) {
	patch := fmt.Sprint("patch", id)
	switch w.r.IntN(12) {
	case 10:
		w.input(turn.Elicit{Request: p.ElicitationRequested{Call: id, Server: "s", Message: "who?"}})
	case 11:
		w.input(turn.Elicited{Answer: p.AnswerElicitation{Call: id, Number: 1, Action: p.ElicitationDecline}})
	case 0:
		tried := pick(w.r, nil, &p.CommandResult{ExitCode: 1, Output: "no"})
		w.input(turn.ToolAsked{Request: p.ApprovalRequested{Call: id, Kind: p.ApproveCommand, Command: []string{"make", fmt.Sprint(w.r.IntN(3))}, Cwd: "/w", Tried: tried}})
	case 1, 2:
		w.recordInTurn(&p.CommandStarted{Call: id, Command: []string{"ls"}, Process: json.RawMessage(`{"pid":1}`)})
	case 3:
		w.recordInTurn(&p.PatchStarted{Patch: patch, Call: id, Record: json.RawMessage(`{"r":1}`), Back: json.RawMessage(`{"b":2}`)})
	case 4:
		w.recordInTurn(&p.PatchCommitted{Patch: patch, Call: id})
	case 5:
		w.input(turn.Keep{Started: p.BackgroundStarted{Call: id, Command: []string{"serve"}, Process: json.RawMessage(`{"pid":2}`)}})
	case 6:
		w.recordInTurn(&p.PlanUpdated{Call: id, Plan: []p.PlanStep{{Step: "one"}}})
	default:
		out := p.ToolOutput{Call: id, Output: "ok", Aborted: w.state.Stopping(), Repairs: make([]string, w.r.IntN(2))}
		out.Patch = pick(w.r, nil, &p.PatchResult{Applied: true, Summary: "M a", Diff: "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"}, &p.PatchResult{}, &p.PatchResult{Unsettled: true})
		out.Command = pick(w.r, nil, &p.CommandResult{Output: "printed", Killed: w.r.IntN(2)})
		w.input(turn.ToolDone{Output: out, Diff: pick(w.r, nil, &p.TurnDiff{Diff: "d"})})
	}
}

// damage replaces some events by what stands for records that cannot be read,
// and repeats some.
func (w *walk) damage() {
	var log []p.Event
	for _, e := range w.log {
		switch w.r.IntN(20) {
		case 0:
			log = append(log, p.Event{Time: e.Time, Body: &p.Damaged{Bytes: 1}})
		case 1:
			log = append(log, e, e)
		case 2:
			log = append(log, p.Event{Time: e.Time, Turn: e.Turn, Body: &p.Unknown{Kind: "later", JSON: json.RawMessage(`{}`)}})
		default:
			log = append(log, e)
		}
	}
	w.log = log
	for i := range w.log {
		w.log[i].Seq = p.Seq(i + 1)
	}
}
