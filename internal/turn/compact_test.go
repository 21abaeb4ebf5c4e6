package turn

import (
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func compacting() []p.Body {
	return []p.Body{&p.TurnStarted{Compact: true}, &p.ModelRequested{Response: 1}}
}

func TestCompaction(t *testing.T) {
	s, events := steps(t, State{}, Summarise{})
	same(t, "start", compacting(), events)
	if !s.Compacting() {
		t.Error("it does not say that it compacts")
	}
	s, _ = steps(t, s, ModelItem{Response: 1, Body: &p.AssistantMessage{Text: "first"}},
		ModelItem{Response: 1, Index: 1, Body: &p.AssistantMessage{Text: "the gist"}})
	s, events = steps(t, s, ModelDone{Response: 1})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 1}, &p.Compacted{Summary: "the gist"}, ended(p.Completed)}, events)
	if s.Compacting() {
		t.Error("it still compacts")
	}
}

// A failed or stopped compaction leaves the history as it is.
func TestCompactionThatDoesNotWork(t *testing.T) {
	refusal := &p.Error{Kind: p.ErrorContextLength, Message: "too long"}
	said := with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: "half"})
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    Happening
	}{
		{"fails", said, ModelDone{Response: 1, Error: refusal}},
		{"stopped", stopped(said), ModelDone{Response: 1}},
		{"crashed", said, Lost{Crash: true}},
	} {
		for _, b := range decide(t, fold(tt.given...), tt.in) {
			if _, ok := b.(*p.Compacted); ok {
				t.Errorf("%s: compacted all the same", tt.name)
			}
		}
	}
}

// A summary of nothing would make the model forget everything.
func TestCompactionWithoutASummary(t *testing.T) {
	for name, given := range map[string][]p.Body{
		"nothing said": compacting(),
		"blank":        with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: " \n"}),
		"only thought": with(compacting(), &p.Reasoning{Item: id(1, 1, 0), Text: "hm"}),
	} {
		err := &p.Error{Kind: p.ErrorModel, Message: "the model gave no summary"}
		same(t, name, []p.Body{
			&p.ModelEnded{Response: 1},
			&p.StopRequested{Reason: p.Failed, Error: err},
			&p.TurnEnded{Reason: p.Failed, Error: err, Elapsed: 2 * time.Second},
		}, decide(t, fold(given...), ModelDone{Response: 1}))
	}
}

func TestCompactionIsRetried(t *testing.T) {
	s, events := steps(t, fold(with(compacting(), &p.AssistantMessage{Item: id(1, 1, 0), Text: "half"})...),
		ModelDone{Response: 1, Error: broken()}, RetryDue{})
	same(t, "again", []p.Body{&p.ModelRequested{Response: 2}}, events)
	_, events = steps(t, s, ModelItem{Response: 2, Body: &p.AssistantMessage{Text: "whole"}}, ModelDone{Response: 2})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 2}, &p.Compacted{Summary: "whole"}, ended(p.Completed)}, events)
}

// A message cannot join a compaction: what it says would be summarised away,
// unanswered. That holds for one that waited before it began, too.
func TestMessagesDoNotJoinACompaction(t *testing.T) {
	s := fold(with(started(), accepted(2, p.Steer), &p.ModelEnded{Response: 1}, &p.StopRequested{Reason: p.Failed}, ended(p.Failed))...)
	s, _ = steps(t, s, Summarise{}, say(p.Steer, "x"), say("", "y"))
	for _, in := range s.Inputs[1:] {
		if in.Mode != p.Queue {
			t.Errorf("message %d is taken to %s", in.ID, in.Mode)
		}
	}
	s, events := steps(t, s, ModelDone{Response: 1, Error: broken()}, RetryDue{})
	same(t, "retry", []p.Body{&p.ModelRequested{Response: 2}}, events)
	s, events = steps(t, s, ModelItem{Response: 2, Body: &p.AssistantMessage{Text: "gist"}}, ModelDone{Response: 2})
	same(t, "end", []p.Body{&p.ModelEnded{Response: 2}, &p.Compacted{Summary: "gist"}, ended(p.Completed)}, events)
	_, events = steps(t, s, Next{})
	same(t, "next", []p.Body{
		&p.TurnStarted{}, &p.UserMessage{Item: id(3, 0, 0), Input: 2, Content: p.Text("m2")}, &p.ModelRequested{Response: 1},
	}, events)
}

func TestMessagesDuringAStoppedCompaction(t *testing.T) {
	s, events := steps(t, fold(stopped(compacting())...), say(p.Steer, "x"))
	same(t, "accepted", []p.Body{&p.InputAccepted{Input: 1, Mode: p.Queue, Content: p.Text("x"), After: true}}, events)
	s, _ = steps(t, s, ModelDone{Response: 1})
	_, events = steps(t, s, Next{})
	same(t, "next", []p.Body{
		&p.TurnStarted{}, &p.UserMessage{Item: id(2, 0, 0), Input: 1, Content: p.Text("x")}, &p.ModelRequested{Response: 1},
	}, events)
}
