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
// returned. Start reading at Decide; the table of states and inputs is in
// docs/architecture.md.
package turn

import (
	"slices"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// State is where a conversation stands: its current turn, if any, and the
// messages that wait. The zero value is a conversation that has not begun.
//
// Its fields change only in Evolve. All of them are exported so that a State can
// be saved as JSON and restored: a new field is saved with the others.
type State struct {
	Active bool
	Turn   p.TurnID // the current turn, or the last one

	Pending        []PendingInput        // messages accepted and not yet consumed, in order
	Returned       []p.ReturnedInput     // messages that were not delivered and not resolved, in order
	LastInput      p.InputID             // the last message that was accepted
	Background     []p.BackgroundStarted // the background commands that run, in order
	LastBackground p.BackgroundID        // the last background command there was

	// The current turn, or the last one.
	Started      time.Time
	Compact      bool            // it only compacts
	Shell        bool            // it runs a command of the user's own
	Messages     int             // how many messages the user has sent in it
	Killed       int             // processes that were ended by a stop
	Repairs      int             // made in calls that the model got wrong
	Calls        []OpenCall      // without an output, in order
	HasCompacted bool            // the history was compacted since the last response that worked
	Reduced      []p.HistoryPart // what was taken out of the history because the service refused it
	Hold         *p.Held         // the limit that it waits for, if any
	RefusedCalls []string        // call ids that the provider complained about
	UnknownCalls []string        // those that the history does not know: requests must carry an output for them
	StopReason   p.EndReason     // why it stops, once a client asked to
	StopError    *p.Error        // with StopReason: what failed

	// Its latest model response.
	Response        int   // 1, 2, …
	Streaming       bool  // it has not ended
	AwaitingSummary bool  // it is a summary, to continue from
	Summaries       int   // how many summaries came since the last compaction, or in this turn
	Limit           int64 // how many tokens its request may have; 0 is no limit
	Refusals        int   // how often in a row requests were refused for their length
	AskedForTool    bool
	LastText        string     // its last message
	Items           []p.ItemID // what it has finished
	Backoff         bool       // it failed, and a retry waits for its time
	Attempts        Retries    // how often it was retried, since the last response that worked
}

// add counts a retry.
func (r *Retries) add(b *p.ModelRetry) {
	if b.Stream {
		r.Stream++
	} else {
		r.Request++
	}
}

// A PendingInput is a message that waits.
type PendingInput struct {
	ID        p.InputID
	Mode      p.WhenBusy
	Content   []p.Content
	After     bool // it arrived after the stop, or is what the stop was for: it starts the next turn
	Overrides *p.Overrides
	Ref       string // the client's own name for it
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

// An OpenCall is a call that has no output yet.
type OpenCall struct {
	Call
	Stage   Stage
	Lane    Lane `json:",omitempty"` // what it runs beside, once it has begun
	Started time.Time
	Request *p.ApprovalRequested // the latest question about it, if any
	Grant   p.Decision           // the answer to it, if any

	Elicited     int   `json:",omitempty"` // how often it has asked the person something
	Elicitations []int `json:",omitempty"` // numbers of those that no client has answered yet
}

// tried is how its run in the sandbox went, if it asked for another.
func (c OpenCall) tried() *p.CommandResult {
	if c.Request == nil {
		return nil
	}
	return c.Request.Tried
}

// A Stage says how far an OpenCall is.
type Stage string

const (
	pending Stage = ""       // its turn to run has not come
	asking  Stage = "asking" // a client has to approve it
	running Stage = "running"
)

// Evolve returns the state after one event.
func (s State) Evolve(e p.Event) State {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		s = State{
			Active: true, Turn: e.Turn, Pending: slices.Clone(s.Pending), LastInput: s.LastInput,
			Returned: s.staying(), Background: s.Background, LastBackground: s.LastBackground,
			Started: e.Time, Compact: b.Compact, Shell: b.Shell,
		}
		for i := range s.Pending { // they waited for this turn, and now wait like any other
			s.Pending[i].After = false
		}
	case *p.InputAccepted:
		s.LastInput = b.Input
		s.Pending = append(slices.Clip(s.Pending), PendingInput{b.Input, b.Mode, b.Content, b.After, b.Overrides, b.Ref})
	case *p.InputEdited:
		s.Pending = slices.Clone(s.Pending)
		if i := s.input(b.Input); i >= 0 {
			s.Pending[i].Content = b.Content
		}
	case *p.InputReturned:
		s.evolveReturned(b.Inputs)
	case *p.ReturnedResolved:
		s.Returned = slices.DeleteFunc(slices.Clone(s.Returned), func(in p.ReturnedInput) bool { return slices.Contains(b.Inputs, in.Input) })
	case *p.UserMessage:
		s.Messages++
		s.LastInput = max(s.LastInput, b.Input)
		s.dropInput(b.Input)
	case *p.StopRequested:
		s.StopReason, s.StopError, s.Hold = b.Reason, b.Error, nil
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
		s.LastBackground = b.ID
		s.Background = append(slices.Clip(s.Background), *b)
	case *p.BackgroundEnded:
		i := s.background(b.ID)
		if i < 0 {
			return
		}
		if s.StopReason != "" && s.own(s.Background[i]) {
			s.Killed += b.Result.Killed
		}
		s.Background = slices.Delete(slices.Clone(s.Background), i, i+1)
	}
}

func (s State) background(id p.BackgroundID) int {
	return slices.IndexFunc(s.Background, func(b p.BackgroundStarted) bool { return b.ID == id })
}

// own reports whether a background command was started by the running turn, and
// ends with it if that is stopped. A turn that only failed leaves its background
// commands to the next one, as a turn that completed does.
func (s State) own(b p.BackgroundStarted) bool {
	failed := s.StopReason == p.Failed && !s.journalFailed()
	return s.Active && b.Call.Turn == s.Turn && !failed
}

// OwnBackground returns the background commands that are stopped with the running turn.
func (s State) OwnBackground() []p.BackgroundStarted {
	return slices.DeleteFunc(slices.Clone(s.Background), func(b p.BackgroundStarted) bool { return !s.own(b) })
}

func (s *State) evolveModel(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		s.Response, s.Streaming, s.AskedForTool, s.Backoff, s.LastText, s.Items = b.Response, true, false, false, "", nil
		s.AwaitingSummary, s.Limit = b.Compact, b.Limit
	case *p.Held:
		s.Hold = b
	case *p.HoldEnded:
		s.Hold = nil
	case *p.HistoryReduced:
		s.Reduced = append(slices.Clip(s.Reduced), b.Part)
	case *p.Compacted:
		s.HasCompacted, s.Summaries = true, 0
	case *p.AssistantMessage:
		s.LastText = b.Text
		s.Items = append(slices.Clip(s.Items), b.Item)
	case *p.Reasoning:
		s.Items = append(slices.Clip(s.Items), b.Item)
	case *p.ModelEnded:
		s.Streaming = false
		switch {
		case b.Error == nil:
			s.Attempts, s.Refusals = Retries{}, 0
			if s.Compacting() {
				s.Summaries++
			}
			s.HasCompacted = s.HasCompacted && s.AwaitingSummary
		case b.Error.Kind == p.ErrorContextLength:
			s.Refusals++
		}
	case *p.ModelRetry:
		s.Backoff = true
		s.Attempts.add(b)
	case *p.HistoryRepaired:
		s.RefusedCalls = append(slices.Clip(s.RefusedCalls), b.WireID)
		if b.UnknownCall {
			s.UnknownCalls = append(slices.Clip(s.UnknownCalls), b.WireID)
		}
	}
}

func (s *State) evolveCall(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		s.AskedForTool = true
		s.Items = append(slices.Clip(s.Items), b.Call)
		s.Calls = append(slices.Clip(s.Calls), OpenCall{Call: Call{b.Call, b.WireID, b.Name, b.Arguments}})
		if b.Call.Response == 0 {
			s.Messages++ // a command of the user's own is numbered with what the user says
		}
	case *p.CallStarted:
		s.setStage(b.Call, running, e.Time)
		if i := s.find(b.Call); i >= 0 {
			s.Calls[i].Lane = Lane(b.Lane)
		}
	case *p.ApprovalRequested:
		s.setStage(b.Call, asking, e.Time)
		if i := s.find(b.Call); i >= 0 {
			s.Calls[i].Request = b
		}
	case *p.ApprovalResolved:
		s.setStage(b.Call, pending, e.Time)
		if i := s.find(b.Call); i >= 0 {
			s.Calls[i].Grant = b.Decision
		}
	case *p.ToolOutput:
		if i := s.find(b.Call); i >= 0 {
			s.Calls = slices.Delete(slices.Clone(s.Calls), i, i+1)
		}
		if b.Command != nil {
			s.Killed += b.Command.Killed
		}
		s.Repairs += len(b.Repairs)
	default:
		s.evolveElicitation(e)
	}
}

func (s *State) setStage(id p.CallID, to Stage, at time.Time) {
	i := s.find(id)
	if i < 0 {
		return
	}
	s.Calls = slices.Clone(s.Calls)
	s.Calls[i].Stage = to
	if to == running {
		s.Calls[i].Started = at
	}
}

func (s *State) dropInput(id p.InputID) {
	if i := s.input(id); i >= 0 {
		s.Pending = slices.Delete(slices.Clone(s.Pending), i, i+1)
	}
}

func (s State) find(id p.CallID) int {
	return slices.IndexFunc(s.Calls, func(c OpenCall) bool { return c.ID == id })
}

// unfinished reports whether the item is one that the model may still finish.
func (s State) unfinished(id p.ItemID) bool {
	return s.Streaming && id.Turn == s.Turn && id.Response == s.Response && !slices.Contains(s.Items, id)
}

func (s State) input(id p.InputID) int {
	return slices.IndexFunc(s.Pending, func(in PendingInput) bool { return in.ID == id })
}

func (s State) any(at Stage) bool {
	return slices.ContainsFunc(s.Calls, func(c OpenCall) bool { return c.Stage == at })
}

func (s State) count(at Stage) int {
	n := 0
	for _, c := range s.Calls {
		if c.Stage == at {
			n++
		}
	}
	return n
}

// working reports whether anything of the turn still runs.
func (s State) working() bool { return s.Streaming || s.any(running) }

// Waiting reports whether the turn only waits: for a person, or for a limit to be
// lifted.
func (s State) Waiting() bool {
	return s.Active && s.StopReason == "" && !s.working() && !s.Backoff && (s.any(asking) && !s.denialTruncated() || s.Hold != nil)
}

// denialTruncated reports whether a crash separated the record of a denial from
// what follows it: the call is open, and must not run.
func (s State) denialTruncated() bool {
	return slices.ContainsFunc(s.Calls, func(c OpenCall) bool {
		return c.Stage == pending && (c.Grant == p.Denied || c.Grant == p.Abort)
	})
}

// Stopping reports whether the turn has been asked to stop.
func (s State) Stopping() bool { return s.Active && s.StopReason != "" }

// Asking returns the calls that wait for a person.
func (s State) PendingApprovals() []p.CallID {
	var ids []p.CallID
	for _, c := range s.Calls {
		if c.Stage == asking {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// OpenCalls returns the calls that have no output yet, in order.
func (s State) OpenCalls() []p.CallID {
	ids := make([]p.CallID, len(s.Calls))
	for i, c := range s.Calls {
		ids[i] = c.ID
	}
	return ids
}

// Request returns the latest approval request of an open call, or nil.
func (s State) Request(id p.CallID) *p.ApprovalRequested {
	if i := s.find(id); i >= 0 {
		return s.Calls[i].Request
	}
	return nil
}

// Call returns an open call, or the zero Call if it is not open.
func (s State) Call(id p.CallID) Call {
	if i := s.find(id); i >= 0 {
		return s.Calls[i].Call
	}
	return Call{}
}

// Compacting reports whether the latest request asks for a summary.
func (s State) Compacting() bool { return s.Active && (s.Compact || s.AwaitingSummary) }
