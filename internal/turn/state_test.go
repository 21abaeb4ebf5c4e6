package turn

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestWhatAStateSaysOfItself(t *testing.T) {
	type view struct {
		Active, Waiting, Stopping, Compacting bool
		Turn                                  p.TurnID
		Response                              int
		Asking, Open                          []p.CallID
	}
	call := id(1, 1, 0)
	for name, tt := range map[string]struct {
		given []p.Body
		want  view
	}{
		"new":       {nil, view{Open: []p.CallID{}}},
		"streaming": {started(), view{Active: true, Turn: 1, Response: 1, Open: []p.CallID{}}},
		"running":   {toolRuns(), view{Active: true, Turn: 1, Response: 1, Open: []p.CallID{call}}},
		"asked":     {asked(), view{Active: true, Waiting: true, Turn: 1, Response: 1, Asking: []p.CallID{call}, Open: []p.CallID{call}}},
		"back-off":  {backingOff(), view{Active: true, Turn: 1, Response: 1, Open: []p.CallID{}}},
		"stopped while asking": {
			stopped(asked()),
			view{Active: true, Stopping: true, Turn: 1, Response: 1, Asking: []p.CallID{call}, Open: []p.CallID{call}},
		},
		"compacting": {compacting(), view{Active: true, Compacting: true, Turn: 1, Response: 1, Open: []p.CallID{}}},
		"ended after a stop": {
			with(stopped(started()), &p.ModelEnded{Response: 1}, ended(p.Interrupted)),
			view{Turn: 1, Response: 1, Open: []p.CallID{}},
		},
	} {
		s := fold(tt.given...)
		got := view{
			s.Active, s.Waiting(), s.Stopping(), s.Compacting(), s.Turn, s.Response(), s.PendingApprovals(), s.OpenCalls(),
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCallByID(t *testing.T) {
	s := fold(toolRuns()...)
	want := Call{ID: id(1, 1, 0), WireID: "w0", Name: "work", Arguments: "{}"}
	if got := s.Call(want.ID); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := s.Call(id(1, 1, 1)); got != (Call{}) {
		t.Errorf("an unknown call is %+v", got)
	}
	s = s.Evolve(p.Event{Turn: 1, Body: &p.ToolOutput{Call: want.ID}})
	if got := s.Call(want.ID); got != (Call{}) {
		t.Errorf("an answered call is still open: %+v", got)
	}
}

// Events that are no business of the turn, and those that name something
// unknown, change nothing.
func TestEventsThatChangeNothing(t *testing.T) {
	s := fold(with(asked(), accepted(2, p.Queue))...)
	for _, b := range []p.Body{
		&p.ConversationStarted{}, &p.Configured{}, &p.Renamed{}, &p.Reverted{}, &p.Notice{}, &p.Damaged{},
		&p.CommandStarted{Call: id(1, 1, 0)}, &p.PlanUpdated{}, &p.Delta{}, &p.Unknown{},
		&p.CallStarted{Call: id(9, 9, 9)}, &p.ApprovalRequested{Call: id(9, 9, 9)}, &p.ApprovalResolved{Call: id(9, 9, 9)},
		&p.BackgroundEnded{ID: 9}, &p.ToolOutput{Call: id(9, 9, 9), Repaired: true}, &p.InputEdited{Input: 9}, &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 9}}},
	} {
		if got := s.Evolve(p.Event{Turn: 1, Time: now, Body: b}); !reflect.DeepEqual(got, s) {
			t.Errorf("%T changes the state to %+v", b, got)
		}
	}
}

// A conversation that is taken up from a checkpoint goes on like the original.
func TestRestore(t *testing.T) {
	s := fold(with(toolRuns(),
		kept(1, id(1, 1, 0)), kept(2, id(1, 1, 0)), &p.BackgroundEnded{ID: 2}, &p.BackgroundEnded{ID: 1},
		&p.ToolOutput{Call: id(1, 1, 0)}, ended(p.Completed))...)
	if s.LastBackground() != 2 || len(s.Background) != 0 {
		t.Fatalf("last %d, running %v", s.LastBackground(), s.Background)
	}
	r := Restore(s.Turn, s.LastInput(), s.LastBackground())
	for _, col := range slices.Concat(theInputs, besides) {
		want, wantErr := s.decide(env(), col.in)
		got, err := r.decide(env(), col.in)
		if diff := cmp.Diff(want, got); diff != "" || err != wantErr {
			t.Errorf("%s: %v, want %v (-want +got):\n%s", col.name, err, wantErr, diff)
		}
	}
	after := p.Event{Turn: 2, Time: t0, Body: &p.TurnStarted{}}
	s.Background = nil // as good as empty
	if got, want := r.Evolve(after), s.Evolve(after); !reflect.DeepEqual(got, want) {
		t.Errorf("after the next start\ngot  %+v\nwant %+v", got, want)
	}
}
