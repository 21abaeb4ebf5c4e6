// Package fsck checks that a recorded conversation keeps the promises: numbers
// without gaps, turns that end exactly once, calls with exactly one output, approvals that are
// resolved, messages that are delivered or returned, returned messages that are sent, taken or dropped at most once.
//
// It is a fold over the events, like everything that reads a conversation, and
// knows nothing of how they came about: it is the judge of package turn, in
// tests and for people (`fermata fsck`).
package fsck

import (
	"fmt"
	"maps"
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Problem is a promise that is not kept.
type Problem struct {
	Seq  p.Seq // where it was noticed; 0 for the end
	Rule string
	Text string

	// Lost says that a record was damaged and has been set aside, or that this
	// follows from it: it is known, and nothing is left to repair.
	Lost bool
}

func (pr Problem) String() string {
	if pr.Seq == 0 {
		return fmt.Sprintf("%s: %s", pr.Rule, pr.Text)
	}
	return fmt.Sprintf("event %d: %s: %s", pr.Seq, pr.Rule, pr.Text)
}

// A Checker folds events. The zero value is ready for the first.
type Checker struct {
	Problems []Problem

	blind  bool // a record was lost, and no turn has started since
	lossy  bool // a record was lost
	last   p.Seq
	active p.TurnID // the turn that runs, or 0
	turn   p.TurnID // the last turn
	stop   bool     // it was asked to stop
	held   bool     // it waits for a limit to be lifted

	response  int
	streaming bool
	calls     map[p.CallID]*call
	order     []p.CallID // of calls, in order
	items     map[p.ItemID]bool
	inputs    map[p.InputID]*input
	missing   map[p.CallID]bool // calls of earlier turns that have no output

	background  map[p.BackgroundID]p.CallID // background commands that run
	backgrounds p.BackgroundID              // the last one
}

type call struct {
	outputs int
	started int
	asked   int
	open    bool // an approval is open
	granted int
	ended   bool // the response that made it has ended

	elicited     int          // how often it has asked the person something
	elicitations map[int]bool // those that are open
}

type input struct {
	accepted, delivered, returned int
	deleted                       bool // a client took it back
	stays                         bool // it is returned until it is resolved
	resolved                      int
}

// rules is the list of what is checked at each event, in order.
var rules = []struct {
	name  string
	check func(c *Checker, e p.Event) string
}{
	{"numbers", (*Checker).numbers},
	{"damage", (*Checker).damage},
	{"start", (*Checker).start},
	{"turns", (*Checker).turns},
	{"responses", (*Checker).responses},
	{"items", (*Checker).finished},
	{"calls", (*Checker).called},
	{"approvals", (*Checker).approvals},
	{"elicitations", (*Checker).elicitations},
	{"holds", (*Checker).holds},
	{"messages", (*Checker).messages},
	{"background", (*Checker).backgroundCommands},
	{"ends", (*Checker).ends},
}

// Apply checks one event.
func (c *Checker) Apply(e p.Event) {
	if c.calls == nil {
		c.calls, c.items, c.inputs = map[p.CallID]*call{}, map[p.ItemID]bool{}, map[p.InputID]*input{}
		c.missing, c.background = map[p.CallID]bool{}, map[p.BackgroundID]p.CallID{}
	}
	if _, ok := e.Body.(*p.Damaged); ok {
		c.blind, c.lossy = true, true
	}
	for _, r := range rules {
		if text := r.check(c, e); text != "" {
			// Messages wait and background commands run across turns, and a lost
			// beginning is recorded again at any time.
			lost := c.blind || c.lossy && (r.name == "messages" || r.name == "background" || r.name == "start")
			c.Problems = append(c.Problems, Problem{e.Seq, r.name, text, lost})
		}
	}
	if _, ok := e.Body.(*p.TurnStarted); ok {
		c.blind = false // a turn that is there from its start can be judged
	}
}

// End says that there are no more events, and returns all problems. A turn
// that has not ended is one, unless it waits for a person.
func (c *Checker) End() []Problem {
	problem := func(rule, format string, args ...any) {
		c.Problems = append(c.Problems, Problem{0, rule, fmt.Sprintf(format, args...), c.lossy && rule == "messages"})
	}
	if c.last == 0 {
		problem("start", "the conversation is empty")
	}
	if c.active != 0 && !c.waiting() && !c.held {
		problem("turns", "turn %d has not ended (opening the conversation ends it)", c.active)
	}
	for _, id := range slices.Sorted(maps.Keys(c.background)) {
		problem("background", "background command %d has not ended (opening the conversation ends it)", id)
	}
	for _, id := range slices.Sorted(maps.Keys(c.inputs)) {
		in := c.inputs[id]
		if in.accepted > 0 && in.delivered+in.returned == 0 && c.active == 0 {
			problem("messages", "message %d was neither delivered nor returned", id)
		}
	}
	return c.Problems
}

// EndRunning is End for a conversation that a process has open: what goes on is
// no problem.
func (c *Checker) EndRunning() []Problem {
	if c.last == 0 {
		return nil // it is about to begin
	}
	return c.Problems
}

// Idle reports whether no turn and no background command runs.
func (c *Checker) Idle() bool { return c.active == 0 && len(c.background) == 0 }

// waiting reports whether the active turn only waits for a person.
func (c *Checker) waiting() bool {
	asks := false
	for _, id := range c.order {
		k := c.calls[id]
		if k.open {
			asks = true
		} else if k.outputs == 0 && k.started > k.asked {
			return false
		}
	}
	return asks && !c.streaming && !c.stop
}

func (c *Checker) numbers(e p.Event) string {
	want := c.last + 1
	c.last = e.Seq
	if e.Seq != want {
		return fmt.Sprintf("the number is %d, not %d", e.Seq, want)
	}
	return ""
}

func (c *Checker) damage(e p.Event) string {
	if b, ok := e.Body.(*p.Damaged); ok {
		return fmt.Sprintf("a record was lost (%d bytes set aside in %s)", b.Bytes, b.File)
	}
	return ""
}

func (c *Checker) start(e p.Event) string {
	_, ok := e.Body.(*p.ConversationStarted)
	if ok != (e.Seq == 1) {
		return "a conversation starts with conversation_started, and only there"
	}
	return ""
}

func (c *Checker) turns(e p.Event) string {
	if _, ok := e.Body.(*p.TurnStarted); ok {
		was := c.active
		want := c.turn + 1
		c.active, c.turn, c.stop, c.response, c.streaming = e.Turn, e.Turn, false, 0, false
		for id, k := range c.calls {
			if k.outputs == 0 {
				c.missing[id] = true
			}
		}
		c.calls, c.order, c.items = map[p.CallID]*call{}, nil, map[p.ItemID]bool{}
		switch {
		case was != 0:
			return fmt.Sprintf("turn %d starts while turn %d runs", e.Turn, was)
		case e.Turn != want:
			return fmt.Sprintf("turn %d follows turn %d", e.Turn, want-1)
		}
		return ""
	}
	if e.Turn != 0 && e.Turn != c.active {
		return fmt.Sprintf("%s of turn %d, which does not run", p.Kind(e.Body), e.Turn)
	}
	if _, ok := e.Body.(*p.StopRequested); ok {
		if c.stop {
			return "stopped twice"
		}
		c.stop = true
	}
	return ""
}

func (c *Checker) responses(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		bad := c.streaming || b.Response != c.response+1 || c.stop
		c.response, c.streaming = b.Response, true
		for id, k := range c.calls {
			if k.outputs == 0 {
				return fmt.Sprintf("a request is made while call %s has no output", id)
			}
		}
		if bad {
			return fmt.Sprintf("request %d does not follow", b.Response)
		}
	case *p.ModelEnded:
		if !c.streaming || b.Response != c.response {
			return fmt.Sprintf("response %d ends and does not run", b.Response)
		}
		c.streaming = false
		for _, k := range c.calls {
			k.ended = true
		}
	}
	return ""
}

func (c *Checker) finished(e p.Event) string {
	var id p.ItemID
	switch b := e.Body.(type) {
	case *p.AssistantMessage:
		id = b.Item
	case *p.Reasoning:
		id = b.Item
	case *p.ToolCall:
		id = b.Call
	case *p.UserMessage:
		id = b.Item
	default:
		return ""
	}
	if c.items[id] {
		return fmt.Sprintf("item %s is finished twice", id)
	}
	c.items[id] = true
	if id.Turn != e.Turn || id.Response != 0 && (id.Response != c.response || !c.streaming) {
		return fmt.Sprintf("item %s does not belong here", id)
	}
	return ""
}

func (c *Checker) called(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		c.calls[b.Call] = &call{ended: b.Call.Response == 0} // the user's own is part of no response
		c.order = append(c.order, b.Call)
	case *p.CallStarted:
		k := c.calls[b.Call]
		switch {
		case k == nil:
			return fmt.Sprintf("call %s starts and was never made", b.Call)
		case !k.ended:
			return fmt.Sprintf("call %s starts before its response has ended", b.Call)
		case k.outputs > 0 || k.open || k.started != k.asked || k.granted != k.asked:
			return fmt.Sprintf("call %s starts again", b.Call)
		case c.stop:
			return fmt.Sprintf("call %s starts after the stop", b.Call)
		}
		k.started++
	case *p.ToolOutput:
		k := c.calls[b.Call]
		if k == nil {
			if b.Repaired { // of an earlier turn
				return c.repaired(b.Call)
			}
			return fmt.Sprintf("an output for call %s, which was not made in this turn", b.Call)
		}
		k.outputs++
		if k.outputs > 1 {
			return fmt.Sprintf("call %s has %d outputs", b.Call, k.outputs)
		}
	}
	return ""
}

func (c *Checker) repaired(id p.CallID) string {
	if !c.missing[id] {
		return fmt.Sprintf("call %s is repaired and lacks no output", id)
	}
	delete(c.missing, id)
	return ""
}

func (c *Checker) approvals(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.ApprovalRequested:
		k := c.calls[b.Call]
		if k == nil || k.open || k.outputs > 0 || k.started != k.asked+1 {
			return fmt.Sprintf("an approval for call %s, which does not run", b.Call)
		}
		k.asked++
		k.open = true
	case *p.ApprovalResolved:
		k := c.calls[b.Call]
		if k == nil || !k.open {
			return fmt.Sprintf("an answer for call %s, without a request", b.Call)
		}
		k.open = false
		if b.Decision == p.Approved || b.Decision == p.ApprovedForSession {
			k.granted++
		}
	}
	return ""
}

// elicitations checks that what a call asks the person is resolved, once, while it runs.
func (c *Checker) elicitations(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.ElicitationRequested:
		k := c.calls[b.Call]
		if k == nil || k.open || k.outputs > 0 || k.started != k.asked+1 || b.Number != k.elicited+1 {
			return fmt.Sprintf("question %d of call %s, which does not run or has asked %d", b.Number, b.Call, b.Number)
		}
		if k.elicitations == nil {
			k.elicitations = map[int]bool{}
		}
		k.elicited, k.elicitations[b.Number] = b.Number, true
	case *p.ElicitationResolved:
		k := c.calls[b.Call]
		if k == nil || !k.elicitations[b.Number] {
			return fmt.Sprintf("an answer to question %d of call %s, which is not open", b.Number, b.Call)
		}
		delete(k.elicitations, b.Number)
	case *p.ToolOutput:
		if k := c.calls[b.Call]; k != nil && len(k.elicitations) > 0 {
			return fmt.Sprintf("an output for call %s, which has an open question", b.Call)
		}
	}
	return ""
}

// holds checks that nothing begins while a turn waits for a limit.
func (c *Checker) holds(e p.Event) string {
	was := c.held
	switch e.Body.(type) {
	case *p.Held:
		c.held = true
		if was || c.streaming || c.stop || c.active == 0 {
			return "the turn is held while it runs, or twice"
		}
	case *p.HoldEnded:
		c.held = false
		if !was {
			return "a hold ends that never began"
		}
	case *p.StopRequested, *p.TurnStarted, *p.TurnEnded:
		c.held = false
	case *p.ModelRequested, *p.CallStarted:
		if was {
			return p.Kind(e.Body) + " while the turn is held"
		}
	}
	return ""
}

func (c *Checker) messages(e p.Event) string {
	get := func(id p.InputID) *input {
		if c.inputs[id] == nil {
			c.inputs[id] = &input{}
		}
		return c.inputs[id]
	}
	check := func(id p.InputID, in *input) string {
		if in.accepted > 1 || in.delivered+in.returned > 1 {
			return fmt.Sprintf("message %d was accepted %d times, delivered %d times, returned %d times",
				id, in.accepted, in.delivered, in.returned)
		}
		return ""
	}
	switch b := e.Body.(type) {
	case *p.InputAccepted:
		in := get(b.Input)
		in.accepted++
		return check(b.Input, in)
	case *p.UserMessage:
		in := get(b.Input)
		in.delivered++
		return check(b.Input, in)
	case *p.ReturnedResolved:
		return c.resolved(b)
	case *p.InputReturned:
		for _, r := range b.Inputs {
			in := get(r.Input)
			in.returned++
			in.deleted, in.stays = r.Deleted, r.Stays
			if in.accepted == 0 {
				return fmt.Sprintf("message %d is returned and was never accepted", r.Input)
			}
			if text := check(r.Input, in); text != "" {
				return text
			}
		}
	}
	return ""
}

// resolved checks that a returned message is sent, taken or dropped once, and that what was sent is there.
func (c *Checker) resolved(b *p.ReturnedResolved) string {
	for _, id := range b.Inputs {
		in := c.inputs[id]
		if in == nil || in.returned == 0 || in.deleted {
			return fmt.Sprintf("message %d is %s and was not returned", id, b.As)
		}
		if in.resolved++; in.resolved > 1 {
			return fmt.Sprintf("message %d is %s, and was sent, taken or dropped before", id, b.As)
		}
	}
	by := c.inputs[b.Message]
	switch {
	case len(b.Inputs) == 0:
		return "no returned message is named"
	case b.As == p.ResolvedSent && (by == nil || slices.Contains(b.Inputs, b.Message)):
		return fmt.Sprintf("returned messages are sent by message %d, which was not accepted", b.Message)
	case b.As != p.ResolvedSent && b.Message != 0:
		return fmt.Sprintf("returned messages are %s by message %d", b.As, b.Message)
	}
	return ""
}

// unresolved is how many messages are returned until they are sent, taken or dropped.
func (c *Checker) unresolved() (n int) {
	for _, in := range c.inputs {
		if in.stays && in.resolved == 0 {
			n++
		}
	}
	return n
}

func (c *Checker) backgroundCommands(e p.Event) string {
	switch b := e.Body.(type) {
	case *p.BackgroundStarted:
		want := c.backgrounds + 1
		c.backgrounds = b.ID
		c.background[b.ID] = b.Call
		k := c.calls[b.Call]
		switch {
		case e.Turn != 0:
			return fmt.Sprintf("background command %d belongs to turn %d", b.ID, e.Turn)
		case b.ID != want:
			return fmt.Sprintf("background command %d follows %d", b.ID, want-1)
		case k == nil || k.outputs > 0 || k.started == k.asked || c.stop:
			return fmt.Sprintf("background command %d comes of call %s, which does not run", b.ID, b.Call)
		}
	case *p.BackgroundEnded:
		if _, ok := c.background[b.ID]; !ok {
			return fmt.Sprintf("background command %d ends and does not run", b.ID)
		}
		delete(c.background, b.ID)
		if e.Turn != 0 {
			return fmt.Sprintf("the end of background command %d belongs to turn %d", b.ID, e.Turn)
		}
	}
	return ""
}

// ends checks what must be true when a turn ends.
func (c *Checker) ends(e p.Event) string {
	b, ok := e.Body.(*p.TurnEnded)
	if !ok {
		return ""
	}
	c.active = 0
	for _, id := range c.order {
		if k := c.calls[id]; k.outputs != 1 || k.open {
			return fmt.Sprintf("turn %d ended; call %s has %d outputs, approval open: %t", e.Turn, id, k.outputs, k.open)
		}
	}
	if c.streaming {
		return fmt.Sprintf("turn %d ended in the middle of response %d", e.Turn, c.response)
	}
	for id, call := range c.background {
		if call.Turn == e.Turn && c.stop && b.Reason != p.Failed {
			return fmt.Sprintf("turn %d was stopped and ended; background command %d, which it started, runs on", e.Turn, id)
		}
	}
	if n := c.unresolved(); b.Returned != n && b.Returned != 0 { // earlier versions do not count
		return fmt.Sprintf("turn %d counts %d returned messages, %d are", e.Turn, b.Returned, n)
	}
	if stopped := b.Reason != p.Completed; stopped != c.stop {
		return fmt.Sprintf("turn %d ended %s, stop asked for: %t", e.Turn, b.Reason, c.stop)
	}
	return ""
}
