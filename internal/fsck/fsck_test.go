package fsck

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func id(turn, response, index int) p.ItemID {
	return p.ItemID{Turn: p.TurnID(turn), Response: response, Index: index}
}

// at overrides what number gives an event, if it is not 0.
type at struct {
	p.Body
	seq  p.Seq
	turn p.TurnID
}

// noTurn is the turn of an event that belongs to none.
const noTurn = p.TurnID(-1)

// number makes events of bodies as the owner of a conversation would.
func number(bodies ...p.Body) []p.Event {
	var events []p.Event
	var turn p.TurnID
	active := false
	for i, b := range bodies {
		e := p.Event{Seq: p.Seq(i + 1), Body: b}
		if o, ok := b.(at); ok {
			e.Body = o.Body
		}
		if _, ok := e.Body.(*p.TurnStarted); ok {
			turn++
			active = true
		}
		if active {
			e.Turn = turn
		}
		if _, ok := e.Body.(*p.TurnEnded); ok {
			active = false
		}
		if o, ok := b.(at); ok && o.seq != 0 {
			e.Seq = o.seq
		}
		if o, ok := b.(at); ok && o.turn != 0 {
			e.Turn = max(o.turn, 0)
		}
		events = append(events, e)
	}
	return events
}

func check(bodies ...p.Body) []string {
	var c Checker
	for _, e := range number(bodies...) {
		c.Apply(e)
	}
	var out []string
	for _, problem := range c.End() {
		out = append(out, problem.String())
	}
	return out
}

// Short names for what logs are made of. The call is always 1.1.0.
var (
	begin     = &p.ConversationStarted{}
	start     = &p.TurnStarted{}
	hello     = &p.UserMessage{Item: id(1, 0, 0), Input: 1}
	request   = &p.ModelRequested{Response: 1}
	aCall     = &p.ToolCall{Call: id(1, 1, 0)}
	over      = &p.ModelEnded{Response: 1}
	run       = &p.CallStarted{Call: id(1, 1, 0)}
	ask       = &p.ApprovalRequested{Call: id(1, 1, 0)}
	output    = &p.ToolOutput{Call: id(1, 1, 0)}
	again     = &p.ModelRequested{Response: 2}
	overAgain = &p.ModelEnded{Response: 2}
	stop      = &p.StopRequested{Reason: p.Interrupted}
	completed = &p.TurnEnded{Reason: p.Completed}
	cut       = &p.TurnEnded{Reason: p.Interrupted}
	repaired  = &p.ToolOutput{Call: id(1, 1, 0), Repaired: true}
)

func resolve(d p.Decision) p.Body { return &p.ApprovalResolved{Call: id(1, 1, 0), Decision: d} }

func elicit(n int) p.Body { return &p.ElicitationRequested{Call: id(1, 1, 0), Number: n} }

func elicited(n int) p.Body {
	return &p.ElicitationResolved{Call: id(1, 1, 0), Number: n, Action: p.ElicitationDecline}
}

func keep(n int) p.Body {
	return at{Body: &p.BackgroundStarted{ID: p.BackgroundID(n), Call: id(1, 1, 0)}, turn: noTurn}
}

func bgEnd(n int) p.Body { return at{Body: &p.BackgroundEnded{ID: p.BackgroundID(n)}, turn: noTurn} }

func accept(input p.InputID) p.Body { return &p.InputAccepted{Input: input, Mode: p.Queue} }

func giveBack(inputs ...p.InputID) p.Body {
	b := &p.InputReturned{}
	for _, in := range inputs {
		b.Inputs = append(b.Inputs, p.ReturnedInput{Input: in})
	}
	return b
}

// until returns the opening of every log, up to the response, and more.
func until(more ...p.Body) []p.Body {
	return append([]p.Body{begin, start, hello, request}, more...)
}

func TestCleanLogs(t *testing.T) {
	for name, log := range map[string][]p.Body{
		"only begun": {begin},
		"an answer":  until(&p.Reasoning{Item: id(1, 1, 0)}, &p.AssistantMessage{Item: id(1, 1, 1)}, over, completed),
		"a call":     until(aCall, over, run, &p.CommandStarted{Call: id(1, 1, 0)}, output, again, overAgain, completed),
		"approved":   until(aCall, over, run, ask, resolve(p.Approved), run, output, again, overAgain, completed),
		"approved, then asked again": until(aCall, over, run, ask, resolve(p.Approved), run, ask, resolve(p.ApprovedForSession), run, output,
			again, overAgain, completed),
		"denied":              until(aCall, over, run, ask, resolve(p.Denied), output, again, overAgain, completed),
		"waits for a person":  until(aCall, over, run, ask),
		"waits, with mail":    until(aCall, over, run, ask, accept(2)),
		"stopped":             until(aCall, stop, over, output, cut),
		"stopped while asked": until(aCall, over, run, ask, stop, resolve(p.Cancelled), output, cut),
		"retried":             until(aCall, over, output, &p.ModelRetry{Attempt: 1}, again, overAgain, completed),
		"failed":              until(over, &p.StopRequested{Reason: p.Failed}, &p.TurnEnded{Reason: p.Failed}),
		"returned":            until(accept(2), accept(3), giveBack(2), over, stop, giveBack(3), cut),
		"steered in": until(accept(2), &p.InputEdited{Input: 2}, over, &p.UserMessage{Item: id(1, 0, 1), Input: 2},
			again, overAgain, completed),
		"started by itself": until(accept(2), over, completed, start, &p.UserMessage{Item: id(2, 0, 0), Input: 2}, request, over, completed),
		"same ids in the next turn": until(aCall, over, run, output, again, overAgain, completed,
			start, &p.UserMessage{Item: id(2, 0, 0), Input: 2}, request, &p.ToolCall{Call: id(2, 1, 0)}, over,
			&p.CallStarted{Call: id(2, 1, 0)}, &p.ToolOutput{Call: id(2, 1, 0)}, again, overAgain, completed),
		"a background command":                        until(aCall, over, run, keep(1), output, again, overAgain, completed, bgEnd(1)),
		"a background command, stopped with its turn": until(aCall, over, run, keep(1), output, again, stop, bgEnd(1), overAgain, cut),
		"a background command of an earlier turn": until(aCall, over, run, keep(1), output, again, overAgain, completed,
			start, &p.UserMessage{Item: id(2, 0, 0), Input: 2}, request, stop, over, cut, bgEnd(1)),
		"the user's own command": {
			begin, &p.TurnStarted{Shell: true}, hello, &p.ToolCall{Call: id(1, 0, 1)},
			&p.CallStarted{Call: id(1, 0, 1), Grant: p.Approved}, &p.ToolOutput{Call: id(1, 0, 1)}, completed,
		},
		"compaction":                           {begin, &p.TurnStarted{Compact: true}, request, &p.AssistantMessage{Item: id(1, 1, 0)}, over, &p.Compacted{}, completed},
		"between turns":                        {begin, &p.Configured{}, &p.Renamed{}, &p.Notice{}, &p.Reverted{Before: 1}, &p.Unknown{Kind: "new"}},
		"configured during a turn":             until(at{Body: &p.Configured{}, turn: noTurn}, over, completed),
		"a complaint about a call not known":   until(over, &p.HistoryRepaired{WireID: "x", UnknownCall: true}, again, overAgain, completed),
		"crashed, messages back when it opens": until(accept(2), over, completed, giveBack(2)),
	} {
		if got := check(log...); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestEmptyConversation(t *testing.T) {
	if diff := cmp.Diff([]string{"start: the conversation is empty"}, check()); diff != "" {
		t.Error(diff)
	}
}

// plantedFaults are logs with a fault each, and all that is to be reported.
var plantedFaults = []struct {
	name string
	log  []p.Body
	want []string
}{
	{"numbers: a gap", until(over, at{Body: completed, seq: 8}), []string{"event 8: numbers: the number is 8, not 6"}},
	{"numbers: one twice", until(over, at{Body: completed, seq: 5}), []string{"event 5: numbers: the number is 5, not 6"}},
	{
		"damage", append(until(over, completed), &p.Damaged{Bytes: 7, File: "x.damaged"}),
		[]string{"event 7: damage: a record was lost (7 bytes set aside in x.damaged)"},
	},

	{"start: missing", []p.Body{&p.Notice{}}, []string{"event 1: start: a conversation starts with conversation_started, and only there"}},
	{"start: again", []p.Body{begin, begin}, []string{"event 2: start: a conversation starts with conversation_started, and only there"}},

	{
		"turns: one within another", until(over, start, request, over, completed),
		[]string{"event 6: turns: turn 2 starts while turn 1 runs"},
	},
	{"turns: one left out", []p.Body{begin, at{Body: start, turn: 2}, at{Body: completed, turn: 2}}, []string{"event 2: turns: turn 2 follows turn 0"}},
	{
		"turns: event after the end", until(over, completed, at{Body: &p.PlanUpdated{}, turn: 1}),
		[]string{"event 7: turns: plan_updated of turn 1, which does not run"},
	},
	{
		"turns: event of another turn", until(at{Body: &p.PlanUpdated{}, turn: 2}, over, completed),
		[]string{"event 5: turns: plan_updated of turn 2, which does not run"},
	},
	{
		"turns: ended twice", until(over, completed, at{Body: completed, turn: 1}),
		[]string{"event 7: turns: turn_ended of turn 1, which does not run"},
	},
	{"turns: stopped twice", until(stop, stop, over, cut), []string{"event 6: turns: stopped twice"}},
	{"turns: not ended", until(over), []string{"turns: turn 1 has not ended (opening the conversation ends it)"}},
	{
		"turns: not ended, a call runs", until(aCall, over, run),
		[]string{"turns: turn 1 has not ended (opening the conversation ends it)"},
	},
	{
		"turns: not ended, stopped while asked", until(aCall, over, run, ask, stop),
		[]string{"turns: turn 1 has not ended (opening the conversation ends it)"},
	},

	{"responses: two at once", until(again, overAgain, completed), []string{"event 5: responses: request 2 does not follow"}},
	{"responses: one left out", until(over, &p.ModelRequested{Response: 3}, &p.ModelEnded{Response: 3}, completed), []string{"event 6: responses: request 3 does not follow"}},
	{
		"responses: request after the stop", until(over, stop, again, overAgain, cut),
		[]string{"event 7: responses: request 2 does not follow"},
	},
	{
		"responses: request before an output", until(aCall, over, run, again, overAgain, output, completed),
		[]string{"event 8: responses: a request is made while call 1.1.0 has no output"},
	},
	{"responses: ended twice", until(over, over, completed), []string{"event 6: responses: response 1 ends and does not run"}},
	{
		"responses: another one ended", until(overAgain, over, completed),
		[]string{"event 5: responses: response 2 ends and does not run"},
	},

	{
		"items: message twice", until(&p.AssistantMessage{Item: id(1, 1, 0)}, &p.AssistantMessage{Item: id(1, 1, 0)}, over, completed),
		[]string{"event 6: items: item 1.1.0 is finished twice"},
	},
	{
		"items: reasoning and message with one name", until(&p.Reasoning{Item: id(1, 1, 0)}, &p.AssistantMessage{Item: id(1, 1, 0)}, over, completed),
		[]string{"event 6: items: item 1.1.0 is finished twice"},
	},
	{
		"items: user's message twice", until(over, &p.UserMessage{Item: id(1, 0, 0), Input: 2}, again, overAgain, completed),
		[]string{"event 6: items: item 1.0.0 is finished twice"},
	},
	{
		"items: of another turn", until(&p.AssistantMessage{Item: id(2, 1, 0)}, over, completed),
		[]string{"event 5: items: item 2.1.0 does not belong here"},
	},
	{
		"items: of another response", until(&p.Reasoning{Item: id(1, 2, 0)}, over, completed),
		[]string{"event 5: items: item 1.2.0 does not belong here"},
	},
	{
		"items: after the response", until(over, &p.AssistantMessage{Item: id(1, 1, 0)}, completed),
		[]string{"event 6: items: item 1.1.0 does not belong here"},
	},

	{"calls: never made", until(over, run, completed), []string{"event 6: calls: call 1.1.0 starts and was never made"}},
	{
		"calls: before the response is over", until(aCall, run, over, output, again, overAgain, completed),
		[]string{"event 6: calls: call 1.1.0 starts before its response has ended"},
	},
	{
		"calls: twice", until(aCall, over, run, run, output, again, overAgain, completed),
		[]string{"event 8: calls: call 1.1.0 starts again"},
	},
	{
		"calls: after its output", until(aCall, over, output, run, again, overAgain, completed),
		[]string{"event 8: calls: call 1.1.0 starts again"},
	},
	{
		"calls: while a person is asked", until(aCall, over, run, ask, run, resolve(p.Approved), output, again, overAgain, completed),
		[]string{"event 9: calls: call 1.1.0 starts again"},
	},
	{
		"calls: although denied", until(aCall, over, run, ask, resolve(p.Denied), run, output, again, overAgain, completed),
		[]string{"event 10: calls: call 1.1.0 starts again"},
	},
	{
		"calls: after the stop", until(aCall, over, stop, run, output, cut),
		[]string{"event 8: calls: call 1.1.0 starts after the stop"},
	},
	{
		"calls: two outputs", until(aCall, over, run, output, output, again, overAgain, completed),
		[]string{"event 9: calls: call 1.1.0 has 2 outputs", "event 12: ends: turn 1 ended; call 1.1.0 has 2 outputs, approval open: false"},
	},
	{
		"calls: output for nothing", until(output, over, completed),
		[]string{"event 5: calls: an output for call 1.1.0, which was not made in this turn"},
	},
	{
		"calls: output for a call of an earlier turn", until(aCall, over, run, output, again, overAgain, completed, start, output, completed),
		[]string{"event 13: calls: an output for call 1.1.0, which was not made in this turn"},
	},
	{
		"calls: repaired although answered, at once", until(aCall, over, run, output, again, overAgain, completed, repaired),
		[]string{"event 12: calls: call 1.1.0 has 2 outputs"},
	},
	{
		"calls: repaired although answered, later", until(aCall, over, run, output, again, overAgain, completed, start, completed, repaired),
		[]string{"event 14: calls: call 1.1.0 is repaired and lacks no output"},
	},

	{
		"approvals: of nothing", until(ask, over, completed),
		[]string{"event 5: approvals: an approval for call 1.1.0, which does not run"},
	},
	{
		"approvals: before the call runs", until(aCall, over, ask, output, again, overAgain, completed),
		[]string{"event 7: approvals: an approval for call 1.1.0, which does not run"},
	},
	{
		"approvals: asked twice", until(aCall, over, run, ask, ask, resolve(p.Denied), output, again, overAgain, completed),
		[]string{"event 9: approvals: an approval for call 1.1.0, which does not run"},
	},
	{
		"approvals: after the output", until(aCall, over, run, output, ask, again, overAgain, completed),
		[]string{"event 9: approvals: an approval for call 1.1.0, which does not run"},
	},
	{
		"approvals: answer to nothing", until(aCall, over, run, resolve(p.Approved), output, again, overAgain, completed),
		[]string{"event 8: approvals: an answer for call 1.1.0, without a request"},
	},
	{
		"approvals: answer for no call", until(resolve(p.Approved), over, completed),
		[]string{"event 5: approvals: an answer for call 1.1.0, without a request"},
	},
	{
		"approvals: two answers", until(aCall, over, run, ask, resolve(p.Denied), resolve(p.Approved), output, again, overAgain, completed),
		[]string{"event 10: approvals: an answer for call 1.1.0, without a request"},
	},

	{
		"elicitations: before the call runs", until(aCall, over, elicit(1), output, again, overAgain, completed),
		[]string{"event 7: elicitations: question 1 of call 1.1.0, which does not run or has asked 1"},
	},
	{
		"elicitations: a wrong number", until(aCall, over, run, elicit(2), output, again, overAgain, completed),
		[]string{"event 8: elicitations: question 2 of call 1.1.0, which does not run or has asked 2"},
	},
	{
		"elicitations: answered twice", until(aCall, over, run, elicit(1), elicited(1), elicited(1), output, again, overAgain, completed),
		[]string{"event 10: elicitations: an answer to question 1 of call 1.1.0, which is not open"},
	},
	{
		"elicitations: left open", until(aCall, over, run, elicit(1), output, again, overAgain, completed),
		[]string{"event 9: elicitations: an output for call 1.1.0, which has an open question"},
	},

	{
		"messages: accepted twice", until(accept(2), accept(2), giveBack(2), over, completed),
		[]string{
			"event 6: messages: message 2 was accepted 2 times, delivered 0 times, returned 0 times",
			"event 7: messages: message 2 was accepted 2 times, delivered 0 times, returned 1 times",
		},
	},
	{
		"messages: delivered twice", until(over, &p.UserMessage{Item: id(1, 0, 1), Input: 1}, again, overAgain, completed),
		[]string{"event 6: messages: message 1 was accepted 0 times, delivered 2 times, returned 0 times"},
	},
	{
		"messages: delivered and returned", until(accept(2), over, &p.UserMessage{Item: id(1, 0, 1), Input: 2}, giveBack(2), again, overAgain, completed),
		[]string{"event 8: messages: message 2 was accepted 1 times, delivered 1 times, returned 1 times"},
	},
	{
		"messages: returned and never accepted", until(accept(2), giveBack(2, 3), over, completed),
		[]string{"event 6: messages: message 3 is returned and was never accepted"},
	},
	{
		"messages: lost", until(accept(2), accept(3), accept(4), giveBack(3), over, completed),
		[]string{
			"messages: message 2 was neither delivered nor returned",
			"messages: message 4 was neither delivered nor returned",
		},
	},

	{
		"background: of a call that does not run", until(aCall, over, keep(1), bgEnd(1), run, output, again, overAgain, completed),
		[]string{"event 7: background: background command 1 comes of call 1.1.0, which does not run"},
	},
	{
		"background: after the output", until(aCall, over, run, output, keep(1), again, overAgain, completed, bgEnd(1)),
		[]string{"event 9: background: background command 1 comes of call 1.1.0, which does not run"},
	},
	{
		"background: after the stop", until(aCall, over, run, stop, keep(1), output, bgEnd(1), cut),
		[]string{"event 9: background: background command 1 comes of call 1.1.0, which does not run"},
	},
	{
		"background: numbers", until(aCall, over, run, keep(2), output, again, overAgain, completed, bgEnd(2)),
		[]string{"event 8: background: background command 2 follows 0"},
	},
	{
		"background: ends twice", until(aCall, over, run, keep(1), output, again, overAgain, completed, bgEnd(1), bgEnd(1)),
		[]string{"event 14: background: background command 1 ends and does not run"},
	},
	{
		"background: never ends", until(aCall, over, run, keep(1), output, again, overAgain, completed),
		[]string{"background: background command 1 has not ended (opening the conversation ends it)"},
	},
	{
		"background: of a turn",
		until(aCall, over, run, keep(1).(at).Body, output, again, overAgain, bgEnd(1).(at).Body, completed),
		[]string{
			"event 8: background: background command 1 belongs to turn 1",
			"event 12: background: the end of background command 1 belongs to turn 1",
		},
	},
	{
		"ends: a background command outlives the stop of its turn",
		until(aCall, over, run, keep(1), output, again, stop, overAgain, cut, bgEnd(1)),
		[]string{"event 13: ends: turn 1 was stopped and ended; background command 1, which it started, runs on"},
	},

	{
		"ends: a call without output", until(aCall, over, run, stop, cut),
		[]string{"event 9: ends: turn 1 ended; call 1.1.0 has 0 outputs, approval open: false"},
	},
	{
		"ends: an approval open", until(aCall, over, run, ask, stop, output, cut),
		[]string{"event 11: ends: turn 1 ended; call 1.1.0 has 1 outputs, approval open: true"},
	},
	{"ends: in mid-response", until(stop, cut), []string{"event 6: ends: turn 1 ended in the middle of response 1"}},
	{"ends: completed although stopped", until(over, stop, completed), []string{"event 7: ends: turn 1 ended completed, stop asked for: true"}},
	{"ends: interrupted by nobody", until(over, cut), []string{"event 6: ends: turn 1 ended interrupted, stop asked for: false"}},
}

// Each fault is reported, where it is, and nothing else is.
func TestPlantedFaults(t *testing.T) {
	for _, tt := range plantedFaults {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, check(tt.log...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The output of a damaged record is added when the conversation is opened: the
// damage stays visible, the repair is not one more fault.
func TestRepairOfALostOutput(t *testing.T) {
	lost := until(aCall, over, run, &p.Damaged{}, again, overAgain, completed)
	faults := check(lost...)
	endLost := until(aCall, over, run, &p.Damaged{}, start)
	for _, tt := range []struct {
		name string
		log  []p.Body
		want []string
	}{
		{"at once", append(lost[:len(lost):len(lost)], repaired), faults},
		{"turns later", append(lost[:len(lost):len(lost)], start, completed, start, completed, repaired), faults},
		{"in a turn", append(lost[:len(lost):len(lost)], start, request, over, repaired, again, overAgain, completed), faults},
		{
			"the turn's end is lost as well", append(endLost, completed, repaired),
			[]string{"event 8: damage: a record was lost (0 bytes set aside in )", "event 9: turns: turn 2 starts while turn 1 runs"},
		},
	} {
		got := check(tt.log...)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if twice := check(append(tt.log, repaired)...); len(twice) != len(got)+1 {
			t.Errorf("%s: repaired twice, and not noticed: %q", tt.name, twice)
		}
	}
}

// What follows from a record that was lost is told apart from what is wrong: it
// is known, and nothing is left to do about it.
func TestLostRecords(t *testing.T) {
	damaged := &p.Damaged{}
	second := []p.Body{start, &p.UserMessage{Item: id(2, 0, 0), Input: 2}, request, over, completed}
	for _, tt := range []struct {
		name  string
		log   []p.Body
		lost  int // problems that follow from the loss
		wrong int // and others
	}{
		{"nothing lost", until(over, completed), 0, 0},
		{"nothing lost, and wrong", until(over, cut), 0, 1},
		{"the output", until(aCall, over, run, damaged, again, overAgain, completed), 3, 0},
		{"the call", until(damaged, over, run, output, again, overAgain, completed), 3, 0},
		{"the turn's end, and one more turn", append(until(over, damaged), second...), 2, 0},
		{"the turn's start", append([]p.Body{begin, damaged, at{Body: request, turn: 1}, at{Body: over, turn: 1}, at{Body: completed, turn: 1}}, at{Body: start, turn: 2}, at{Body: completed, turn: 2}), 5, 0},
		{"and wrong in the next turn", append(until(over, damaged, completed), start, cut), 1, 1},
		{"a message returned, turns later", append(append(until(accept(3), over, damaged, completed), second...), start, completed), 2, 0},
		{
			"the start of a background command, which ends turns later",
			append(append(until(aCall, over, run, damaged, output, again, overAgain, completed), second...), bgEnd(1)), 2, 0,
		},
		{
			"the start of a background command, and one more turns later",
			append(until(aCall, over, run, damaged, output, again, overAgain, completed),
				start, &p.UserMessage{Item: id(2, 0, 0), Input: 2}, request, &p.ToolCall{Call: id(2, 1, 0)}, over, &p.CallStarted{Call: id(2, 1, 0)},
				at{Body: &p.BackgroundStarted{ID: 2, Call: id(2, 1, 0)}, turn: noTurn}, &p.ToolOutput{Call: id(2, 1, 0)}, again, overAgain, completed, bgEnd(2)),
			2, 0,
		},
		{
			"the end of a background command, which opening ends once more",
			append(until(aCall, over, run, keep(1), output, again, overAgain, completed), damaged, bgEnd(1)), 1, 0,
		},
		{
			"the end of a background command of a turn that is stopped",
			until(aCall, over, run, keep(1), output, again, stop, damaged, overAgain, cut, bgEnd(1)), 2, 0,
		},
		{"the beginning, recorded again later", append([]p.Body{damaged}, start, hello, request, over, completed, begin), 3, 0},
	} {
		var c Checker
		for _, e := range number(tt.log...) {
			c.Apply(e)
		}
		lost, wrong := 0, 0
		for _, problem := range c.End() {
			if problem.Lost {
				lost++
			} else {
				wrong++
			}
		}
		if lost != tt.lost || wrong != tt.wrong {
			t.Errorf("%s: %d lost and %d wrong, want %d and %d: %v", tt.name, lost, wrong, tt.lost, tt.wrong, c.Problems)
		}
	}
}

// A rule without a planted fault is one that nobody has seen work.
func TestEveryRuleHasAFault(t *testing.T) {
	seen := map[string]bool{}
	for _, log := range [][]p.Body{
		{&p.Notice{}, at{Body: &p.Damaged{}, seq: 7}},
		until(again, aCall, aCall, run, ask, accept(2), accept(2), stop, stop, cut),
		until(over, keep(1), completed),
		until(elicit(1), over, completed),
		until(over, &p.Held{}, again, overAgain, completed),
		{begin, at{Body: start, turn: 3}},
	} {
		var c Checker
		for _, e := range number(log...) {
			c.Apply(e)
		}
		for _, problem := range c.End() {
			seen[problem.Rule] = true
		}
	}
	for _, r := range rules {
		if !seen[r.name] {
			t.Errorf("nothing shows that %q works", r.name)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, turns := range []int{1, 1000} {
		b.Run(fmt.Sprintf("after_%d_turns", turns), func(b *testing.B) {
			var c Checker
			seq, turn := p.Seq(1), p.TurnID(0)
			c.Apply(p.Event{Seq: 1, Body: begin})
			one := func() {
				turn++
				for _, body := range []p.Body{
					start, &p.UserMessage{Item: id(int(turn), 0, 0), Input: p.InputID(turn)}, request,
					&p.ToolCall{Call: id(int(turn), 1, 0)}, over, &p.CallStarted{Call: id(int(turn), 1, 0)},
					&p.ToolOutput{Call: id(int(turn), 1, 0)}, again, overAgain, completed,
				} {
					seq++
					c.Apply(p.Event{Seq: seq, Turn: turn, Body: body})
				}
			}
			for range turns - 1 {
				one()
			}
			for b.Loop() {
				one()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(10*b.N), "ns/event")
			if len(c.Problems) > 0 {
				b.Fatal(c.Problems)
			}
		})
	}
}
