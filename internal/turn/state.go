// Package turn is the life of a turn as a pure state machine.
//
// [State.Decide] says which events follow from an input; [State.Evolve] says how
// an event changes the state. State is nothing but the fold of Evolve over the
// events of a conversation, so running live and replaying after a crash cannot
// disagree. An event is also the instruction to do what it says: the owner acts on
// ModelRequested, CallStarted and ModelRetry once they are recorded.
//
// What it guarantees, whatever the inputs: a turn that started ends with exactly one
// TurnEnded, and before it every call has got one output, every approval is
// resolved, and every accepted message is delivered, kept for the next turn, or
// handed back. Start reading at Decide; the table of states and inputs is in
// docs/architecture.md.
package turn

import (
	"slices"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// State is where a conversation stands: its current turn, if any, and the
// messages that wait. The zero value is a conversation that has not begun.
type State struct {
	Active  bool
	Turn    p.TurnID       // the current turn, or the last one
	Pending []PendingInput // accepted and not yet consumed, in order
	// Background are the background commands that run, in order.
	Background []p.BackgroundStarted

	backgrounds  p.BackgroundID // how many there ever were
	inputs       p.InputID      // how many messages were ever accepted
	started      time.Time
	compact      bool        // the turn only compacts
	shell        bool        // the turn runs a command of the user's own
	summing      bool        // the latest request asks for a summary, to go on from
	summed       bool        // the history was compacted in this turn
	messages     int         // what the user said in this turn
	response     int         // the latest model response of this turn
	streaming    bool        // it is under way
	called       bool        // it asked for a tool
	said         string      // its last message
	items        []p.ItemID  // what it has finished
	backoff      bool        // a retry is waiting for its time
	attempts     int         // retries since the last response that worked
	refused      []string    // call ids that the provider complained about in this turn
	unknownCalls []string    // those of them that the history does not know
	stopping     p.EndReason // why, once somebody asked to stop
	cause        *p.Error    // with stopping: what failed
	killed       int
	calls        []call // without an output, in order
}

// A PendingInput is a message that waits.
type PendingInput struct {
	ID        p.InputID
	Mode      p.WhenBusy
	Content   []p.Content
	After     bool // it arrived after the stop, or is what the stop was for: it starts the next turn
	Overrides *p.Overrides
}

// Joins reports whether the message joins the running turn.
func (in PendingInput) Joins() bool { return in.Mode == p.Steer && !in.After }

// A Call is what the model asked for.
type Call struct {
	ID        p.CallID
	WireID    string
	Name      string
	Arguments string
}

type call struct {
	Call
	stage   stage
	grant   p.Decision // how it was approved, if it was
	started time.Time
	tried   *p.CommandResult // how its run in the sandbox went, if it asks for another
}

type stage int

const (
	pending stage = iota // its turn to run has not come
	asking               // somebody has to approve it
	running
)

// Evolve returns the state after one event.
func (s State) Evolve(e p.Event) State {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		s = State{
			Active: true, Turn: e.Turn, Pending: slices.Clone(s.Pending), inputs: s.inputs,
			started: e.Time, compact: b.Compact, shell: b.Shell,
			Background: s.Background, backgrounds: s.backgrounds,
		}
		for i := range s.Pending { // they waited for this turn, and now wait like any other
			s.Pending[i].After = false
		}
	case *p.InputAccepted:
		s.inputs = b.Input
		s.Pending = append(slices.Clip(s.Pending), PendingInput{b.Input, b.Mode, b.Content, b.After, b.Overrides})
	case *p.InputEdited:
		s.Pending = slices.Clone(s.Pending)
		if i := s.input(b.Input); i >= 0 {
			s.Pending[i].Content = b.Content
		}
	case *p.InputReturned:
		for _, r := range b.Inputs {
			s.dropInput(r.Input)
		}
	case *p.UserMessage:
		s.messages++
		s.inputs = max(s.inputs, b.Input)
		s.dropInput(b.Input)
	case *p.StopRequested:
		s.stopping, s.cause = b.Reason, b.Error
	case *p.TurnEnded:
		s.Active = false
	default:
		s.evolveModel(e)
		s.evolveCall(e)
		s.evolveBackground(e)
	}
	return s
}

func (s *State) evolveBackground(e p.Event) {
	switch b := e.Body.(type) {
	case *p.BackgroundStarted:
		s.backgrounds = b.ID
		s.Background = append(slices.Clip(s.Background), *b)
	case *p.BackgroundEnded:
		i := s.background(b.ID)
		if i < 0 {
			return
		}
		if s.stopping != "" && s.own(s.Background[i]) {
			s.killed += b.Result.Killed
		}
		s.Background = slices.Delete(slices.Clone(s.Background), i, i+1)
	}
}

func (s State) background(id p.BackgroundID) int {
	return slices.IndexFunc(s.Background, func(b p.BackgroundStarted) bool { return b.ID == id })
}

// own reports whether a background command was started by the running turn.
func (s State) own(b p.BackgroundStarted) bool { return s.Active && b.Call.Turn == s.Turn }

// OwnBackground returns the background commands that the running turn started: they are
// stopped with it.
func (s State) OwnBackground() []p.BackgroundStarted {
	return slices.DeleteFunc(slices.Clone(s.Background), func(b p.BackgroundStarted) bool { return !s.own(b) })
}

func (s *State) evolveModel(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		s.response, s.streaming, s.called, s.backoff, s.said, s.items = b.Response, true, false, false, "", nil
		s.summing = b.Compact
	case *p.Compacted:
		s.summed = true
	case *p.AssistantMessage:
		s.said = b.Text
		s.items = append(slices.Clip(s.items), b.Item)
	case *p.Reasoning:
		s.items = append(slices.Clip(s.items), b.Item)
	case *p.ModelEnded:
		s.streaming = false
		if b.Error == nil {
			s.attempts = 0
		}
	case *p.ModelRetry:
		s.backoff, s.attempts = true, b.Attempt
	case *p.HistoryRepaired:
		s.refused = append(slices.Clip(s.refused), b.WireID)
		if b.UnknownCall {
			s.unknownCalls = append(slices.Clip(s.unknownCalls), b.WireID)
		}
	}
}

func (s *State) evolveCall(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		s.called = true
		s.items = append(slices.Clip(s.items), b.Call)
		s.calls = append(slices.Clip(s.calls), call{Call: Call{b.Call, b.WireID, b.Name, b.Arguments}})
		if b.Call.Response == 0 {
			s.messages++ // a command of the user's own is numbered with what the user says
		}
	case *p.CallStarted:
		s.setStage(b.Call, running, e.Time)
	case *p.ApprovalRequested:
		s.setStage(b.Call, asking, e.Time)
		if i := s.find(b.Call); i >= 0 {
			s.calls[i].tried = b.Tried
		}
	case *p.ApprovalResolved:
		s.setStage(b.Call, pending, e.Time)
		if i := s.find(b.Call); i >= 0 {
			s.calls[i].grant = b.Decision
		}
	case *p.ToolOutput:
		if i := s.find(b.Call); i >= 0 {
			s.calls = slices.Delete(slices.Clone(s.calls), i, i+1)
		}
		if b.Command != nil {
			s.killed += b.Command.Killed
		}
	}
}

func (s *State) setStage(id p.CallID, to stage, at time.Time) {
	i := s.find(id)
	if i < 0 {
		return
	}
	s.calls = slices.Clone(s.calls)
	s.calls[i].stage = to
	if to == running {
		s.calls[i].started = at
	}
}

func (s *State) dropInput(id p.InputID) {
	if i := s.input(id); i >= 0 {
		s.Pending = slices.Delete(slices.Clone(s.Pending), i, i+1)
	}
}

func (s State) find(id p.CallID) int {
	return slices.IndexFunc(s.calls, func(c call) bool { return c.ID == id })
}

// unfinished reports whether the item is one that the model may still finish.
func (s State) unfinished(id p.ItemID) bool {
	return s.streaming && id.Turn == s.Turn && id.Response == s.response && !slices.Contains(s.items, id)
}

func (s State) input(id p.InputID) int {
	return slices.IndexFunc(s.Pending, func(in PendingInput) bool { return in.ID == id })
}

func (s State) any(at stage) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.stage == at })
}

// working reports whether anything of the turn still runs.
func (s State) working() bool { return s.streaming || s.any(running) }

// Waiting reports whether the turn only waits for a person.
func (s State) Waiting() bool {
	return s.Active && s.stopping == "" && !s.working() && !s.backoff && s.any(asking) && !s.torn()
}

// torn reports whether a crash cut the record of a refusal from what follows
// from it: the call is open, and must not run.
func (s State) torn() bool {
	return slices.ContainsFunc(s.calls, func(c call) bool {
		return c.stage == pending && (c.grant == p.Denied || c.grant == p.Abort)
	})
}

// Stopping reports whether the turn has been asked to stop.
func (s State) Stopping() bool { return s.Active && s.stopping != "" }

// Asking returns the calls that wait for a person.
func (s State) PendingApprovals() []p.CallID {
	var ids []p.CallID
	for _, c := range s.calls {
		if c.stage == asking {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// OpenCalls returns the calls that have no output yet, in order.
func (s State) OpenCalls() []p.CallID {
	ids := make([]p.CallID, len(s.calls))
	for i, c := range s.calls {
		ids[i] = c.ID
	}
	return ids
}

// Call returns an open call, or the zero Call if it is not open.
func (s State) Call(id p.CallID) Call {
	if i := s.find(id); i >= 0 {
		return s.calls[i].Call
	}
	return Call{}
}

// LastInput is the number of the last message that was accepted.
func (s State) LastInput() p.InputID { return s.inputs }

// LastBackground is the number of the last background command.
func (s State) LastBackground() p.BackgroundID { return s.backgrounds }

// Restore returns the state between two turns, when no message waits and no
// background command runs.
func Restore(last p.TurnID, inputs p.InputID, backgrounds p.BackgroundID) State {
	return State{Turn: last, inputs: inputs, backgrounds: backgrounds}
}

// Response is the number of the turn's latest model response.
func (s State) Response() int { return s.response }

// Compacting reports whether the latest request asks for a summary.
func (s State) Compacting() bool { return s.Active && (s.compact || s.summing) }

// UnknownCalls returns the call ids that this turn's requests must carry an output for
// although the history does not know them.
func (s State) UnknownCalls() []string { return s.unknownCalls }
