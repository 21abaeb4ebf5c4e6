// Package convert makes events of ours from what package foreign reads: [Events] is a conversation, whole and valid
// whatever was read, and [Check] says what was wrong with it. It is pure.
package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

// keepTokens is how much of the user's own messages is kept beside a summary.
const keepTokens = 20_000

const (
	// noOutput answers a call whose output is not in the session.
	noOutput = "No output was recorded for this call. It may have run, and may have had effects: check before you repeat it."
	// noMessage stands for the message of a turn that begins without one.
	noMessage = "[the message that began this turn was not recorded]"
)

// Events makes the events of a conversation of ours from one of another agent. children are the conversations that
// its subagents have become, by their sessions.
func Events(c foreign.Conversation, start p.ConversationStarted, children map[string]p.ConversationID) []p.Event {
	b := &builder{outputs: map[string][]foreign.Step{}, children: children, at: firstTime(c), ends: endsAreRecorded(c)}
	for _, s := range c.Steps {
		if s.Kind == foreign.Output {
			b.outputs[s.ID] = append(b.outputs[s.ID], s)
		}
	}
	b.add(0, &start)
	if first := firstUser(c.Steps); c.Title != "" && c.Title != foreign.Title(first) {
		b.add(0, &p.Renamed{Title: c.Title})
	}
	for _, s := range c.Steps {
		b.take(s)
	}
	open := b.endTurn(true)
	for _, loss := range c.Losses {
		b.add(0, &p.Notice{Text: "import: " + loss, Warn: true})
	}
	b.add(0, &p.Imported{
		Agent: c.Agent.String(), Session: c.ID, Parent: c.Parent, Path: c.Path, Model: c.Model, Branch: c.Branch, Commit: c.Commit,
		Steps: len(c.Steps), Sum: Sum(c.Steps), Turns: b.turn, Open: open, Losses: c.Losses,
	})
	return b.events
}

func firstTime(c foreign.Conversation) time.Time {
	for _, s := range c.Steps {
		if !s.Time.IsZero() && (c.Started.IsZero() || s.Time.Before(c.Started)) {
			return s.Time
		}
	}
	if c.Started.IsZero() {
		return c.Modified
	}
	return c.Started
}

func firstUser(steps []foreign.Step) string {
	for _, s := range steps {
		if s.Kind == foreign.User {
			return s.Text
		}
	}
	return ""
}

// endsAreRecorded reports whether the ends of turns are steps: then one without an end was interrupted by a crash.
func endsAreRecorded(c foreign.Conversation) bool {
	return slices.ContainsFunc(c.Steps, func(s foreign.Step) bool { return s.Kind == foreign.Completed })
}

// A builder makes events of steps, turn by turn and response by response.
type builder struct {
	events   []p.Event
	outputs  map[string][]foreign.Step // by call: those that have not been used
	children map[string]p.ConversationID
	ends     bool // ends of turns are recorded
	at       time.Time

	turn   p.TurnID
	active bool
	began  time.Time
	inputs p.InputID
	total  p.Usage
	calls  int // made so far, to name those that have no id

	// Of the turn.
	response int
	reason   p.EndReason // if it is known
	failure  string
	last     foreign.Kind   // of the last item
	open     bool           // a call has no output
	unsent   []foreign.Step // messages that were never delivered

	// Of the response at hand, which is written when it is known where it ends.
	items    []foreign.Step
	answered bool // an output has come since
	usage    *p.Usage
}

func (b *builder) add(turn p.TurnID, body p.Body) {
	b.events = append(b.events, p.Event{Seq: p.Seq(len(b.events) + 1), Time: b.at, Turn: turn, Body: body})
}

// take takes one step.
func (b *builder) take(s foreign.Step) {
	if s.Time.After(b.at) {
		b.at = s.Time
	}
	switch s.Kind {
	case foreign.User:
		b.endTurn(false)
		b.beginTurn(s)
	case foreign.Message, foreign.Thought, foreign.Call:
		if b.answered {
			b.endResponse()
		}
		b.needTurn()
		b.items = append(b.items, s)
		b.last, b.reason = s.Kind, ""
	case foreign.Output:
		b.answered = b.answered || len(b.items) > 0
		b.last = foreign.Output
	case foreign.Usage:
		b.addUsage(s.Tokens)
	case foreign.Compaction:
		b.compact(s)
	case foreign.Interrupted:
		b.setReason(p.Interrupted, "")
	case foreign.Failed:
		b.setReason(p.Failed, s.Text)
	case foreign.Completed:
		b.setReason(p.Completed, "")
	case foreign.Unsent:
		b.unsent = append(b.unsent, s)
	}
}

func (b *builder) setReason(r p.EndReason, failure string) {
	if b.active && (b.reason == "" || b.reason == p.Completed) {
		b.reason, b.failure = r, failure
	}
}

func (b *builder) addUsage(u p.Usage) {
	b.total = b.total.Add(u)
	if !b.active {
		return
	}
	if b.usage == nil {
		b.usage = &p.Usage{}
	}
	sum := b.usage.Add(u)
	b.usage = &sum
}

func (b *builder) beginTurn(s foreign.Step) {
	b.turn++
	b.inputs++
	b.active, b.began, b.response, b.reason, b.failure, b.last, b.open = true, b.at, 0, "", "", foreign.User, false
	content := p.Text(s.Text)
	if s.Text == "" {
		content = nil
	}
	for _, image := range s.Images {
		content = append(content, p.Content{Type: p.ContentImage, ImageURL: image})
	}
	b.add(b.turn, &p.TurnStarted{})
	b.add(b.turn, &p.UserMessage{Item: p.ItemID{Turn: b.turn}, Input: b.inputs, Content: content})
}

func (b *builder) needTurn() {
	if !b.active {
		b.beginTurn(foreign.Step{Text: noMessage})
	}
}

// endResponse writes the response at hand: its items, its end, and the outputs of its calls.
func (b *builder) endResponse() {
	if len(b.items) == 0 {
		return
	}
	b.response++
	b.add(b.turn, &p.ModelRequested{Response: b.response})
	type made struct {
		id   p.CallID
		step foreign.Step
	}
	var calls []made
	for i, s := range b.items {
		id := p.ItemID{Turn: b.turn, Response: b.response, Index: i}
		switch s.Kind {
		case foreign.Message:
			b.add(b.turn, &p.AssistantMessage{Item: id, Text: s.Text, Partial: s.Partial})
		case foreign.Thought:
			b.add(b.turn, &p.Reasoning{Item: id, Text: s.Text, Raw: s.Raw})
		case foreign.Call:
			b.calls++
			b.add(b.turn, b.call(id, s))
			calls = append(calls, made{id, s})
		}
	}
	b.add(b.turn, &p.ModelEnded{Response: b.response, Usage: b.usage})
	for _, c := range calls {
		b.answer(c.id, c.step)
	}
	b.items, b.answered, b.usage = nil, false, nil
}

// call makes the event of a call. Its name and its arguments are those of our tool, where there is one.
func (b *builder) call(id p.CallID, s foreign.Step) *p.ToolCall {
	wireID := wireName(s.ID)
	if wireID == "" {
		wireID = fmt.Sprintf("call_%d", b.calls)
	}
	call := &p.ToolCall{Call: id, WireID: wireID, Kind: p.CallFunction, Name: wireName(s.Name), Arguments: cmp.Or(s.Input, "{}")}
	if s.Custom {
		call.Kind, call.Arguments = p.CallCustom, s.Input
		return call
	}
	call.Name, call.Arguments = translate(call.Name, call.Arguments)
	return call
}

// wireName is a name of a call or a tool as every service accepts it.
func wireName(s string) string {
	name := []byte(s)
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), 64)])
}

// answer writes the output of a call.
func (b *builder) answer(id p.CallID, s foreign.Step) {
	b.add(b.turn, &p.CallStarted{Call: id})
	outputs := b.outputs[s.ID]
	if len(outputs) == 0 {
		b.open = true
		b.add(b.turn, &p.ToolOutput{Call: id, Output: noOutput, Failed: true, Aborted: true})
		return
	}
	out := outputs[0]
	b.outputs[s.ID] = outputs[1:]
	o := &p.ToolOutput{Call: id, Output: out.Text, Failed: out.Bad, Elapsed: out.Elapsed}
	for _, image := range out.Images {
		o.Content = append(o.Content, p.Content{Type: p.ContentImage, ImageURL: image})
	}
	exit := s.ExitCode
	if exit == nil {
		exit = out.ExitCode
	}
	if exit != nil {
		o.Command = &p.CommandResult{ExitCode: *exit, Output: out.Text, Elapsed: out.Elapsed}
	}
	if diff := cmp.Or(s.Diff, out.Diff); diff != "" {
		o.Patch = &p.PatchResult{Applied: !out.Bad, Diff: diff}
	}
	if plan := planOf(s); plan != nil {
		b.add(b.turn, &p.PlanUpdated{Call: id, Plan: plan})
	}
	if child, ok := b.children[cmp.Or(out.Child, s.Child)]; ok {
		b.add(b.turn, &p.Notice{Text: fmt.Sprintf("the subagent of this call is conversation %s", child)})
	}
	b.add(b.turn, o)
}

// planOf returns the plan that a call sets, nil if it sets none.
func planOf(s foreign.Step) []p.PlanStep {
	var args struct {
		Plan  []p.PlanStep `json:"plan"`
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if name, _ := translate(wireName(s.Name), s.Input); name != "update_plan" || json.Unmarshal([]byte(s.Input), &args) != nil {
		return nil
	}
	for _, t := range args.Todos {
		args.Plan = append(args.Plan, p.PlanStep{Step: t.Content, Status: t.Status})
	}
	return args.Plan
}

// compact writes a compaction: in the turn that runs, or as a turn that does nothing else.
func (b *builder) compact(s foreign.Step) {
	b.endResponse()
	alone := !b.active
	if alone {
		b.turn++
		b.active, b.began, b.response = true, b.at, 0
		b.add(b.turn, &p.TurnStarted{Compact: true})
	}
	b.response++
	b.add(b.turn, &p.ModelRequested{Response: b.response, Compact: true})
	b.add(b.turn, &p.ModelEnded{Response: b.response, Usage: b.usage})
	b.add(b.turn, &p.Compacted{Summary: s.Text, Keep: keepTokens})
	b.usage, b.last = nil, foreign.Compaction
	if alone {
		b.reason = p.Completed
		b.endTurn(false)
	}
}

// endTurn ends the turn that is active, and reports whether it was cut off by a crash. The last one has no successor that
// would show that it ended.
func (b *builder) endTurn(last bool) bool {
	if !b.active {
		return false
	}
	b.endResponse()
	reason := b.reason
	if reason == "" {
		reason = p.Completed
		if b.open || last && (b.ends || b.last != foreign.Message && b.last != foreign.Compaction) {
			reason = p.Crashed
		}
	}
	if len(b.unsent) > 0 && last {
		b.returnUnsent()
	}
	if reason != p.Completed {
		b.add(b.turn, &p.StopRequested{Reason: reason, Error: b.errorOf(reason)})
	}
	end := &p.TurnEnded{Reason: reason, Error: b.errorOf(reason), Elapsed: b.at.Sub(b.began)}
	if total := b.total; total != (p.Usage{}) {
		end.Usage = &total
	}
	b.add(b.turn, end)
	b.active = false
	return reason == p.Crashed
}

func (b *builder) errorOf(r p.EndReason) *p.Error {
	if r != p.Failed {
		return nil
	}
	return &p.Error{Kind: p.ErrorModel, Message: cmp.Or(b.failure, "the agent reported an error")}
}

// returnUnsent records messages that were written and never delivered as returned: they can still be sent.
func (b *builder) returnUnsent() {
	var returned []p.ReturnedInput
	for _, s := range b.unsent {
		b.inputs++
		b.add(b.turn, &p.InputAccepted{Input: b.inputs, Mode: p.Queue, Content: p.Text(s.Text)})
		returned = append(returned, p.ReturnedInput{Input: b.inputs, Mode: p.Queue, Content: p.Text(s.Text)})
	}
	b.add(b.turn, &p.InputReturned{Inputs: returned})
	b.unsent = nil
}
