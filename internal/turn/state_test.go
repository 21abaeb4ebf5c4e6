package turn

import (
	"encoding/json"
	"errors"
	"maps"
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
			s.Active, s.Waiting(), s.Stopping(), s.Compacting(), s.Turn, s.Response, s.PendingApprovals(), s.OpenCalls(),
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
		&p.BackgroundEnded{ID: 9}, &p.ToolOutput{Call: id(9, 9, 9), Repaired: true}, &p.InputEdited{Input: 9}, &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 9, Deleted: true}}}, &p.ReturnedResolved{Inputs: []p.InputID{9}},
	} {
		if got := s.Evolve(p.Event{Turn: 1, Time: now, Body: b}); !reflect.DeepEqual(got, s) {
			t.Errorf("%T changes the state to %+v", b, got)
		}
	}
}

// A state that was saved and restored decides like the original.
func TestSavedState(t *testing.T) {
	states := maps.Clone(theStates)
	for name, s := range theStates {
		states[name+", with a background command"] = beside(s)
	}
	for name, s := range states {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var r State
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		for _, col := range slices.Concat(theInputs, besides) {
			want, wantErr := s.Decide(env(), col.in)
			got, err := r.Decide(env(), col.in)
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
				t.Errorf("%s: %s: %v, want %v (-want +got):\n%s", name, col.name, err, wantErr, diff)
			}
		}
	}
}
