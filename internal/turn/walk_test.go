package turn

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

var walks = flag.Int("walks", longtest.Default(defaultWalks, 2000), "how many random walks to take")

// A walk lets anything happen to a conversation, sense or nonsense.
type walk struct {
	t     *testing.T
	r     *rand.Rand
	now   time.Time
	full  bool // the history is about to be too long
	limit p.OnLimit
	state State
	log   []p.Event
	lost  map[p.Seq]int
	rules *rules
	judge *fsck.Checker
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 11)), now: t0, lost: map[p.Seq]int{}}
	w.replay([]p.Event{{Seq: 1, Time: t0, Body: &p.ConversationStarted{}}})
	return w
}

// replay starts again from a record.
func (w *walk) replay(log []p.Event) {
	w.state, w.log, w.rules, w.judge = State{}, nil, newRules(w.lost), &fsck.Checker{}
	w.rules.crash = true // it may tell of earlier ones
	for _, e := range log {
		w.take(e)
	}
	w.rules.crash = false
}

func (w *walk) take(e p.Event) {
	w.state = w.state.Evolve(e)
	w.log = append(w.log, e)
	w.judge.Apply(e)
	if err := w.rules.apply(e); err != nil {
		w.fail("%v", err)
	}
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	var b strings.Builder
	for _, e := range w.log[max(0, len(w.log)-40):] {
		body, _ := json.Marshal(e.Body)
		fmt.Fprintf(&b, "%4d t%d %-20s %s\n", e.Seq, e.Turn, p.Kind(e.Body), body)
	}
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), b.String())
}

func (w *walk) env() Env {
	e := env()
	e.Now, e.OnLimit = w.now, w.limit
	if w.full {
		e.Room = full().Room
	}
	return e
}

// isOp reports whether a client asked for it: only such a one can be refused.
func isOp(in Input) bool {
	switch in.(type) {
	case User, Compact, Shell, Keep, Stop, Approval, Elicit, Elicited, Edit, Delete, Resolve, TryNow:
		return true
	}
	return false
}

// happen lets one thing happen, and checks how it is decided.
func (w *walk) happen(in Input) error {
	before := freeze(w.state)
	events, err := w.state.decide(w.env(), in)
	if err != nil {
		if len(events) > 0 || !isOp(in) {
			w.fail("%#v: %s", in, answer(events, err))
		}
		return err
	}
	w.pure(before, in, events)
	w.caused(in, events)
	if l, ok := in.(Lost); ok && len(events) > 0 && w.state.Active {
		w.lost[p.Seq(len(w.log)+len(events))] = l.Killed
	}
	for _, b := range events {
		w.take(p.Event{Seq: p.Seq(len(w.log) + 1), Turn: turnOf(w.state, b), Time: w.now, Body: b})
	}
	if len(w.judge.Problems) > 0 {
		w.fail("%#v: %v", in, w.judge.Problems)
	}
	return nil
}

// caused checks what only the cause tells: a worker is not called over before
// it has reported, nothing that was seen is dropped, and a message to a turn
// that only waits for a person replaces it.
func (w *walk) caused(in Input, events []p.Body) {
	reported := func(call p.CallID) bool {
		switch in := in.(type) {
		case ToolDone:
			return in.Output.Call == call
		case ToolAsked:
			return in.Request.Call == call
		case Lost:
			return true
		}
		return false
	}
	w.causedBeside(in, events)
	ended, replaced := false, false
	recorded := map[p.ItemID]bool{}
	for _, b := range events {
		switch b := b.(type) {
		case *p.ToolOutput:
			if w.rules.busy[b.Call] && !reported(b.Call) {
				w.fail("%#v: %s, but call %s still runs", in, answer(events, nil), b.Call)
			}
		case *p.ModelEnded:
			ended = true
		case *p.StopRequested:
			replaced = b.Reason == p.Replaced
		case *p.AssistantMessage:
			recorded[b.Item] = true
		case *p.Reasoning:
			recorded[b.Item] = true
		}
	}
	var open []Partial
	switch in := in.(type) {
	case ModelDone:
		open = in.Open
	case Lost:
		open = in.Open
	case User:
		if in.WhenBusy != p.Replace && replaced {
			w.fail("a message that was not to replace the turn: %s", answer(events, nil))
		}
	case Stop:
		if in.Turn != 0 && in.Turn != w.state.Turn {
			w.fail("a stop of turn %d: %s", in.Turn, answer(events, nil))
		}
	}
	for _, o := range open {
		if ended && !w.state.Compacting() && o.Text != "" && o.Kind != p.DeltaStdout && w.state.unfinished(o.Item) && !recorded[o.Item] {
			w.fail("%#v: %s: what was seen of %s is dropped", in, answer(events, nil), o.Item)
		}
	}
}

// causedBeside checks that a background command is not called over before it
// has reported, or was given up by a Lost that means it, and that nothing seen of
// it is dropped.
func (w *walk) causedBeside(in Input, events []p.Body) {
	for _, b := range events {
		end, ok := b.(*p.BackgroundEnded)
		if !ok {
			continue
		}
		reason, result := p.Completed, p.CommandResult{ExitCode: -1}
		switch in := in.(type) {
		case BackgroundDone:
			result = in.Result
			if in.Stopped {
				reason = p.Interrupted
			}
			ok = in.ID == end.ID
		case Lost:
			ok = in.All || in.Crash || w.state.Active && w.rules.background[end.ID].Turn == w.rules.turn
			reason = p.Interrupted
			if in.Crash {
				reason = p.Crashed
			}
			for _, o := range in.Open {
				if o.Item == end.ID.Item() {
					result.Output, result.Stderr = o.Text, o.Stderr
				}
			}
		default:
			ok = false
		}
		if !ok || end.Reason != reason || !reflect.DeepEqual(end.Result, result) {
			w.fail("%#v: background command %d ends %s with %+v", in, end.ID, end.Reason, end.Result)
		}
	}
}

// pure checks that deciding changed nothing, that the answer is always the
// same, and that the state it was made with is the one its record leads to.
func (w *walk) pure(before State, in Input, events []p.Body) {
	if !w.state.Active {
		again, err := w.state.decide(w.env(), in)
		if err != nil || !reflect.DeepEqual(events, again) {
			w.fail("%#v: first %s, then %s", in, answer(events, nil), answer(again, err))
		}
		return
	}
	d := &decision{state: w.state, env: w.env()}
	err := d.take(in)
	_, lost := in.(Lost)
	d.settle(lost)
	if err != nil || !reflect.DeepEqual(events, bodies(d.events)) {
		w.fail("%#v: first %s, then %s", in, answer(events, nil), answer(bodies(d.events), err))
	}
	if !reflect.DeepEqual(before, w.state) {
		w.fail("%#v changed the state from %+v to %+v", in, before, w.state)
	}
	after := w.state
	for _, b := range events {
		after = after.Evolve(p.Event{Turn: after.Turn, Time: w.now, Body: b})
	}
	d.state.Killed = after.Killed // of a Lost: told by the end only
	if !reflect.DeepEqual(d.state, after) {
		w.fail("%#v: decided for\n%+v\nrecorded is\n%+v", in, d.state, after)
	}
	if w.r.IntN(8) == 0 {
		w.apart(after)
	}
}

// apart checks that two states that come from one do not share what changes.
func (w *walk) apart(after State) {
	before := freeze(after)
	for range 2 {
		s := w.state
		for _, b := range []p.Body{
			&p.InputAccepted{Input: 99}, &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 99}}}, &p.ReturnedResolved{Inputs: w.someReturned()},
			&p.ToolCall{Call: id(9, 9, 9)}, &p.HistoryRepaired{WireID: "zz", UnknownCall: true},
			&p.CallStarted{Call: id(9, 9, 9)}, &p.AssistantMessage{Item: id(9, 9, 8)},
			&p.ElicitationRequested{Call: w.someCall(), Number: 99}, &p.ElicitationResolved{Call: w.someCall(), Number: 1},
			&p.BackgroundStarted{ID: 99}, &p.BackgroundEnded{ID: w.background()},
		} {
			s = s.Evolve(p.Event{Turn: s.Turn, Body: b})
		}
	}
	if !reflect.DeepEqual(before, after) {
		w.fail("another future of the same state changed this one from\n%+v\nto\n%+v", before, after)
	}
}

// freeze copies a state with all that it points to.
func freeze(s State) State {
	s.Pending, s.Calls, s.Items = slices.Clone(s.Pending), slices.Clone(s.Calls), slices.Clone(s.Items)
	s.RefusedCalls, s.UnknownCalls = slices.Clone(s.RefusedCalls), slices.Clone(s.UnknownCalls)
	s.Background, s.Returned = slices.Clone(s.Background), slices.Clone(s.Returned)
	for i := range s.Calls {
		s.Calls[i].Elicitations = slices.Clone(s.Calls[i].Elicitations)
	}
	return s
}

// crash loses the end of the record, and opens the conversation again.
func (w *walk) crash() {
	kept := slices.Clone(w.log[:max(1, len(w.log)-w.r.IntN(6))])
	maps.DeleteFunc(w.lost, func(end p.Seq, _ int) bool { return end > p.Seq(len(kept)) })
	w.replay(kept)
	waited := w.state.Waiting()
	w.rules.crash = true
	w.happenOK(Lost{Crash: true, Killed: w.r.IntN(3), Open: w.partials()})
	w.rules.crash = false
	switch {
	case len(w.state.Background) > 0:
		w.fail("after a crash %v goes on", w.state.Background)
	case waited && !w.state.Waiting():
		w.fail("only a person was waited for, and the crash ended that")
	case w.state.Active && !w.state.Waiting():
		w.fail("after a crash the turn goes on")
	case !w.state.Active && len(w.state.Pending) > 0:
		w.fail("after a crash %v waits for nobody", w.state.Pending)
	}
}

func (w *walk) happenOK(in Input) {
	if err := w.happen(in); err != nil {
		w.fail("%#v: %v", in, err)
	}
}

// stopNow stops the turn and lets its workers report, in any order.
func (w *walk) stopNow() {
	if err := w.happen(Stop{}); err != nil && !errors.Is(err, ErrStopping) {
		w.fail("stop: %v", err)
	}
	if w.r.IntN(4) == 0 {
		w.happenOK(Lost{Killed: w.r.IntN(3)})
	}
	others := slices.DeleteFunc(slices.Clone(w.state.Background), func(b p.BackgroundStarted) bool {
		return w.state.own(b)
	})
	reports := []Input{ModelDone{Response: w.state.Response, Error: w.fault(), Open: w.partials()}}
	for _, call := range w.state.OpenCalls() {
		out := p.ToolOutput{Call: call, Aborted: w.r.IntN(2) == 0}
		reports = append(reports, pick[Input](w.r, ToolDone{Output: out}, ToolDone{Output: out, NotRun: true},
			ToolAsked{Request: p.ApprovalRequested{Call: call}}))
	}
	for _, b := range w.state.OwnBackground() {
		reports = append(reports, w.backgroundDone(b.ID))
	}
	w.r.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
	for _, in := range reports {
		w.happenOK(in)
	}
	if w.state.Active {
		w.fail("stopped, all workers have reported, and the turn goes on: %+v", w.state)
	}
	if !reflect.DeepEqual(others, slices.Clone(w.state.Background)) {
		w.fail("a stop left %+v of %+v", w.state.Background, others)
	}
}

// finish brings the conversation to rest and asks the judges.
func (w *walk) finish() {
	if w.state.Active {
		w.stopNow()
	}
	for range 100 {
		if len(w.state.Pending) == 0 {
			break
		}
		w.happenOK(Next{})
		w.stopNow()
	}
	for _, b := range w.state.Background {
		w.happenOK(pick[Input](w.r, w.backgroundDone(b.ID), Lost{All: true}, Lost{Crash: true}))
	}
	if problems := w.judge.End(); len(problems) > 0 {
		w.fail("%v", problems)
	}
	if len(w.rules.waiting) > 0 {
		w.fail("messages still wait: %v", w.rules.waiting)
	}
}

// decoded checks that the record as it is written leads to the same state.
func (w *walk) decoded() {
	var s State
	for _, e := range w.log {
		data, err := json.Marshal(e)
		if err != nil {
			w.fail("%v", err)
		}
		var back p.Event
		if err := json.Unmarshal(data, &back); err != nil {
			w.fail("%v", err)
		}
		s = s.Evolve(back)
	}
	if !reflect.DeepEqual(s, w.state) {
		w.fail("read back\n%+v\nlive\n%+v", s, w.state)
	}
}

func TestRandomWalks(t *testing.T) {
	ends, beside, resolved, shells := map[p.EndReason]int{}, map[p.EndReason]int{}, map[p.Resolution]int{}, 0
	parallel, meanwhile := 0, 0 // steps after which calls ran side by side, and ran while an approval was open
	for seed := range uint64(*walks) {
		w := newWalk(t, seed)
		for range 15 + w.r.IntN(40) {
			w.now = w.now.Add(time.Duration(w.r.IntN(3)) * time.Second)
			w.full = w.r.IntN(8) == 0
			w.limit = pick(w.r, p.OnLimitHold, p.OnLimitResume, p.OnLimitFail)
			w.step()
			if n := w.state.count(running); n > 1 {
				parallel++
			} else if n > 0 && w.state.any(asking) {
				meanwhile++
			}
		}
		if seed%25 == 0 {
			w.decoded()
		}
		w.finish()
		for _, e := range w.log {
			switch b := e.Body.(type) {
			case *p.TurnEnded:
				ends[b.Reason]++
			case *p.BackgroundEnded:
				beside[b.Reason]++
			case *p.ReturnedResolved:
				resolved[b.As]++
			case *p.TurnStarted:
				if b.Shell {
					shells++
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, reason := range []p.EndReason{p.Completed, p.Failed, p.Interrupted, p.Replaced, p.Crashed} {
		if ends[reason] < *walks/20 {
			t.Errorf("only %d turns ended %s: the walks do not get there", ends[reason], reason)
		}
	}
	for _, reason := range []p.EndReason{p.Completed, p.Interrupted, p.Crashed} {
		if beside[reason] < *walks/100 {
			t.Errorf("only %d background commands ended %s: the walks do not get there", beside[reason], reason)
		}
	}
	for _, as := range []p.Resolution{p.ResolvedSent, p.ResolvedTaken, p.ResolvedDropped} {
		if resolved[as] < *walks/50 {
			t.Errorf("only %d returned messages were %s: the walks do not get there", resolved[as], as)
		}
	}
	if parallel < *walks/10 || meanwhile < *walks/50 {
		t.Errorf("calls ran side by side after %d steps, and while an approval was open after %d: the walks do not get there", parallel, meanwhile)
	}
	if shells < *walks/20 {
		t.Errorf("only %d commands of the user's own: the walks do not get there", shells)
	}
}
