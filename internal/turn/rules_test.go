package turn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// rules is a second judge of a recorded conversation, beside fsck: it knows
// what only the machine knows (which tools only read, how often a request is
// made again) and follows every message by what it says.
type rules struct {
	turn     p.TurnID
	compact  bool // the turn only compacts
	summing  bool // the latest request asks for a summary
	summed   bool
	again    bool // a request is about to be made once more
	crash    bool // what happens now is what opening does after a crash
	before   p.Body
	stop     bool
	failed   bool                // it stops because it failed: its background commands go on
	lost     map[p.Seq]int       // processes that a Lost reported, by the number of the end it led to
	waiting  map[p.InputID]*mail // accepted, not yet delivered or handed back
	returned map[p.InputID]bool  // handed back, and not yet sent, taken or dropped
	last     p.InputID

	order   []p.CallID // of this turn's open calls
	tools   map[p.CallID]string
	busy    map[p.CallID]bool // runs
	asking  map[p.CallID]bool // waits for an approval
	refused map[p.CallID]bool // a person said no
	grants  map[p.CallID]p.Decision
	replace p.InputID // the message that the turn is stopped for
	retries int
	blamed  map[string]bool // calls that the provider complained about
	killed  int

	shell      bool // the turn runs a command of the user's own
	steered    bool // and a message has joined it
	background map[p.BackgroundID]p.CallID
	jobs       p.BackgroundID // the last one
}

// mail is a message that waits.
type mail struct {
	p.ReturnedInput
	after bool
}

func newRules(lost map[p.Seq]int) *rules {
	return &rules{lost: lost, waiting: map[p.InputID]*mail{}, returned: map[p.InputID]bool{}, background: map[p.BackgroundID]p.CallID{}}
}

// apply takes one event, and says what is wrong with it.
func (r *rules) apply(e p.Event) error {
	if err := r.stopped(e.Body); err != nil {
		return err
	}
	for _, check := range []func(p.Event) error{r.life, r.mail, r.model, r.call, r.beside} {
		if err := check(e); err != nil {
			return fmt.Errorf("event %d (%T): %w", e.Seq, e.Body, err)
		}
	}
	r.before = e.Body
	return nil
}

// stopped checks that nothing new begins after a stop.
func (r *rules) stopped(b p.Body) error {
	if !r.stop {
		return nil
	}
	switch b := b.(type) {
	case *p.AssistantMessage:
		if b.Partial {
			return nil
		}
	case *p.Reasoning:
		if b.Partial {
			return nil
		}
	case *p.ApprovalResolved:
		if b.Decision == p.Cancelled {
			return nil
		}
	case *p.ElicitationResolved:
		if b.Action == p.ElicitationCancel {
			return nil
		}
	case *p.ElicitationRequested, *p.BackgroundStarted, *p.ToolCall, *p.CallStarted, *p.ApprovalRequested, *p.ModelRequested, *p.ModelRetry, *p.UserMessage, *p.Compacted:
	default:
		return nil
	}
	return fmt.Errorf("%T after the stop", b)
}

func (r *rules) life(e p.Event) error {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		*r = rules{
			lost: r.lost, waiting: r.waiting, returned: r.returned, last: r.last, turn: e.Turn, compact: b.Compact,
			grants: map[p.CallID]p.Decision{}, crash: r.crash,
			shell: b.Shell, background: r.background, jobs: r.jobs,
			tools: map[p.CallID]string{}, busy: map[p.CallID]bool{}, asking: map[p.CallID]bool{}, refused: map[p.CallID]bool{}, blamed: map[string]bool{},
		}
		for _, m := range r.waiting {
			m.after = false
		}
	case *p.StopRequested:
		r.stop, r.failed = true, b.Reason == p.Failed && (b.Error == nil || b.Error.Kind != p.ErrorJournal)
	case *p.Compacted:
		if !r.compact && !r.summing || r.summed || strings.TrimSpace(b.Summary) == "" {
			return fmt.Errorf("not asked for, or the second: summary %q", b.Summary)
		}
		r.summed, r.summing = true, false
	case *p.TurnEnded:
		return r.end(e, b)
	}
	return nil
}

func (r *rules) end(e p.Event, b *p.TurnEnded) error {
	for id, call := range r.background {
		if r.stop && !r.failed && call.Turn == r.turn {
			return fmt.Errorf("stopped, and background command %d of call %s runs", id, call)
		}
	}
	if err := r.left(b.Returned); err != nil {
		return err
	}
	r.stop, r.failed, r.turn = false, false, 0
	if want := r.killed + r.lost[e.Seq]; b.Killed != want || b.Elapsed < 0 {
		return fmt.Errorf("%d killed, want %d; took %v", b.Killed, want, b.Elapsed)
	}
	if b.Reason == p.Replaced && r.replace != 0 && r.waiting[r.replace] == nil && !r.crash {
		return fmt.Errorf("message %d, for which the turn was stopped, is gone", r.replace)
	}
	for id, m := range r.waiting {
		joins := m.Mode == p.Steer && !m.after
		switch {
		case b.Reason == p.Completed && joins && !r.compact:
			return fmt.Errorf("message %d should have joined", id)
		case (b.Reason == p.Interrupted || b.Reason == p.Replaced || b.Reason == p.Crashed) && !m.after:
			return fmt.Errorf("message %d should have been handed back", id)
		case b.Reason == p.Crashed, b.Error != nil && b.Error.Kind == p.ErrorJournal:
			return fmt.Errorf("message %d waits for a turn that nobody starts", id)
		}
	}
	return nil
}

// mail checks that what is delivered or handed back is what was accepted.
func (r *rules) mail(e p.Event) error {
	switch b := e.Body.(type) {
	case *p.InputAccepted:
		if b.Input != r.last+1 {
			return fmt.Errorf("message %d follows %d", b.Input, r.last)
		}
		r.last = b.Input
		if b.Mode == p.Replace {
			r.replace = b.Input
		}
		r.waiting[b.Input] = &mail{p.ReturnedInput{Input: b.Input, Mode: b.Mode, Content: b.Content}, b.After}
	case *p.InputEdited:
		m := r.waiting[b.Input]
		if m == nil {
			return fmt.Errorf("message %d does not wait", b.Input)
		}
		m.Content = b.Content
	case *p.InputReturned:
		for _, back := range b.Inputs {
			if back.Deleted && back.Input == r.replace {
				r.replace = 0
			}
			if back.Deleted == back.Stays {
				return fmt.Errorf("message %d is deleted: %t, and stays returned: %t", back.Input, back.Deleted, back.Stays)
			}
			if back.Stays {
				r.returned[back.Input] = true
			}
			back.Deleted, back.Stays = false, false
			m := r.waiting[back.Input]
			if m == nil || !cmp.Equal(m.ReturnedInput, back) {
				return fmt.Errorf("%v is handed back, %v waits", back, m)
			}
			delete(r.waiting, back.Input)
		}
		return r.left(b.Left)
	case *p.ReturnedResolved:
		for _, in := range b.Inputs {
			if !r.returned[in] {
				return fmt.Errorf("message %d is %s, and is not returned", in, b.As)
			}
			delete(r.returned, in)
		}
		if (b.As == p.ResolvedSent) != (b.Message == r.last && b.Message != 0) {
			return fmt.Errorf("%s by message %d; the last one is %d", b.As, b.Message, r.last)
		}
		return r.left(b.Left)
	case *p.UserMessage:
		m := r.waiting[b.Input]
		delete(r.waiting, b.Input)
		r.steered = m != nil
		switch {
		case r.compact:
			return fmt.Errorf("message %d in a compaction", b.Input)
		case m == nil && b.Input != r.last+1:
			return fmt.Errorf("message %d does not wait, and is not new after %d", b.Input, r.last)
		case m != nil && !cmp.Equal(m.Content, b.Content):
			return fmt.Errorf("message %d says %v, accepted was %v", b.Input, b.Content, m.Content)
		}
		r.last = max(r.last, b.Input)
	}
	return nil
}

// left checks how many messages are said to be returned.
func (r *rules) left(n int) error {
	if n != len(r.returned) {
		return fmt.Errorf("it counts %d returned messages, %d are", n, len(r.returned))
	}
	return nil
}

func (r *rules) model(e p.Event) error {
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		if r.shell && !r.steered && !r.summing && !b.Compact && b.Response == 1 {
			return errors.New("the model is asked about a command of the user's own")
		}
		for id, m := range r.waiting {
			if m.Mode == p.Steer && !m.after && !r.compact && !b.Compact && b.Response > 1 {
				return fmt.Errorf("message %d should have joined", id)
			}
		}
		if b.Compact && (r.summed || r.summing && !r.again) {
			return errors.New("asks for a summary again")
		}
		if _, ok := r.before.(*p.UserMessage); ok && b.Compact && b.Response > 1 {
			return errors.New("a message joins a request for a summary")
		}
		r.summing, r.again = b.Compact, false
	case *p.ModelEnded:
		if b.Error == nil {
			r.retries = 0
			r.summed = r.summed && r.summing
		}
		r.again = r.again || b.Error != nil && b.Error.Kind == p.ErrorContextLength
	case *p.HoldEnded, *p.HistoryReduced:
		r.again = true
	case *p.ModelRetry:
		r.again = true
		r.retries++
		if most := env().Retries(); b.Attempt != r.retries || b.Attempt > b.Max || b.Max > most.Request+most.Stream {
			return fmt.Errorf("attempt %d of %d is number %d", b.Attempt, b.Max, r.retries)
		}
	case *p.HistoryRepaired:
		if r.blamed[b.WireID] {
			return fmt.Errorf("%s repaired twice", b.WireID)
		}
		r.blamed[b.WireID], r.again = true, true
	}
	return nil
}

func (r *rules) call(e p.Event) error {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		if r.compact || r.summing {
			return errors.New("in a summary")
		}
		if b.Call.Response == 0 { // the user typed it
			if !r.shell {
				return errors.New("a command of the user's own in another turn")
			}
			r.grants[b.Call] = p.Approved
		}
		r.order = append(r.order, b.Call)
		r.tools[b.Call] = b.Name
	case *p.CallStarted:
		if b.Grant != r.grants[b.Call] {
			return fmt.Errorf("call %s runs with %q, granted was %q", b.Call, b.Grant, r.grants[b.Call])
		}
		return r.begin(b)
	case *p.ApprovalRequested:
		delete(r.busy, b.Call)
		r.asking[b.Call] = true
	case *p.ApprovalResolved:
		delete(r.asking, b.Call)
		r.grants[b.Call] = b.Decision
		if b.Decision == p.Denied || b.Decision == p.Abort {
			r.refused[b.Call] = true
		}
		if b.Decision == p.Cancelled && !r.stop {
			return errors.New("cancelled without a stop")
		}
	case *p.ToolOutput:
		delete(r.busy, b.Call)
		if b.Command != nil {
			r.killed += b.Command.Killed
		}
		r.order = slices.DeleteFunc(slices.Clone(r.order), func(id p.CallID) bool { return id == b.Call })
	}
	return nil
}

// beside checks the life of background commands.
func (r *rules) beside(e p.Event) error {
	switch b := e.Body.(type) {
	case *p.BackgroundStarted:
		r.jobs++
		if b.ID != r.jobs || e.Turn != 0 || !r.busy[b.Call] {
			return fmt.Errorf("number %d of turn %d, call %s runs: %t", b.ID, e.Turn, b.Call, r.busy[b.Call])
		}
		r.background[b.ID] = b.Call
	case *p.BackgroundEnded:
		call, ok := r.background[b.ID]
		if !ok || e.Turn != 0 {
			return fmt.Errorf("%d ends in turn %d, and runs: %t", b.ID, e.Turn, ok)
		}
		if r.stop && !r.failed && call.Turn == r.turn {
			r.killed += b.Result.Killed
		}
		delete(r.background, b.ID)
	}
	return nil
}

// alone reports whether a call is a barrier: what its tool is, or because it was approved.
func (r *rules) alone(id p.CallID) bool {
	return r.grants[id] != "" || laneOf(Call{Name: r.tools[id]}) == Alone
}

// begin checks that a call begins when it is its turn, beside no more and no other calls than it may.
func (r *rules) begin(b *p.CallStarted) error {
	id, lane := b.Call, laneOf(Call{Name: r.tools[b.Call]})
	if r.refused[id] {
		return fmt.Errorf("call %s was refused", id)
	}
	if r.alone(id) != (b.Lane == "") {
		return fmt.Errorf("call %s (%s) is recorded in lane %q", id, r.tools[id], b.Lane)
	}
	at := slices.Index(r.order, id)
	for _, before := range r.order[:max(at, 0)] {
		if r.alone(id) || r.alone(before) || lane != Beside && r.tools[before] == r.tools[id] {
			return fmt.Errorf("call %s (%s) overtakes %s (%s)", id, r.tools[id], before, r.tools[before])
		}
	}
	for other := range r.busy {
		if r.alone(id) || r.alone(other) || lane != Beside && r.tools[other] == r.tools[id] {
			return fmt.Errorf("call %s (%s) beside %s (%s)", id, r.tools[id], other, r.tools[other])
		}
	}
	if n := len(r.busy); n >= env().MaxParallel {
		return fmt.Errorf("call %s beside %d others", id, n)
	}
	if n := len(r.asking); n > 0 && !r.alone(id) && lane == Asks {
		return fmt.Errorf("call %s begins to ask while %d approvals are open", id, n)
	}
	r.busy[id] = true
	return nil
}
