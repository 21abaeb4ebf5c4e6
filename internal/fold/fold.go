// Package fold holds everything that is derived from the events of a
// conversation and needed to continue it.
//
// [State] is the fold of [State.Evolve] over the events, and nothing else: it is
// pure, so running live and replaying a journal cannot disagree. It can be saved
// at any event and restored: restoring it and folding the events that follow
// gives the same State as folding all of them. Opening a long conversation relies
// on that.
//
// To add state: add an exported field to State (or to a type in it), set it in
// Evolve, and let the random test reach it. It is then saved with the rest;
// checkpoints of another form are not used.
package fold

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// A State is where a conversation stands. Its fields change only in Evolve. Use
// New or Restore to make one. It is used by one goroutine.
type State struct {
	turn.State

	Seq          p.Seq // of the last event
	ID           p.ConversationID
	Title        string
	Settings     p.Settings       // of the turns to come
	TurnSettings p.Settings       // of the current turn, or the last one
	Usage        p.Usage          // of all model responses together
	Size         int64            // tokens of the latest request with its response; 0 if unknown
	SizeAt       int64            // bytes of the history then
	Windows      map[string]int64 `json:",omitempty"` // tokens that models take, as their services' refusals say
	Ended        p.EndReason      // how the last turn ended

	Warned    map[string]bool   // warnings that were given
	Grants    policy.Grants     // what was approved for the conversation
	Processes []Process         // those whose end is not recorded
	Patches   []OpenPatch       // those whose outcome is not recorded
	Applied   []json.RawMessage // how to take back the patches that the current turn has applied
	Summary   p.TurnSummary     // of the current turn, or the last one
	Ops       []DoneOp          // the latest ops that had names

	History *history.History `json:"-"` // saved beside the rest
}

// A Process was started for a call, or has become a background command.
type Process struct {
	Call       p.CallID
	Background p.BackgroundID  // 0 while it is that of a call
	Handle     json.RawMessage `json:",omitempty"` // how to find it after a crash
}

// String says whose process it is.
func (l Process) String() string {
	if l.Background != 0 {
		return fmt.Sprintf("background command %d", l.Background)
	}
	return fmt.Sprintf("call %s", l.Call)
}

// An OpenPatch is a patch that was begun, and whose outcome is not recorded. It
// has one when the record says so, not when its call is answered: a turn that
// gave up waiting for its workers answers calls without knowing.
type OpenPatch struct {
	p.PatchStarted
	Committed bool
}

// New returns the state of a conversation that has not begun.
func New() *State {
	return &State{Warned: map[string]bool{}, History: &history.History{}}
}

// Evolve folds one event into the state.
func (s *State) Evolve(e p.Event) {
	s.State = s.State.Evolve(e)
	s.History.Apply(e)
	s.Seq = e.Seq
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		s.ID, s.Settings = b.ID, b.Settings
	case *p.Configured:
		s.Settings = b.Settings
	case *p.Renamed:
		s.Title = b.Title
	case *p.TurnStarted:
		s.TurnSettings = s.Settings.ForTurn() // what changes meanwhile is for the next turn
		if b.Shell {
			s.TurnSettings, s.TurnSettings.Plan = s.Settings, false // the user's own command is no part of a plan
		}
	case *p.ModelEnded:
		s.measure(b)
	case *p.Compacted, *p.HistoryReduced, *p.Reverted:
		s.Size, s.SizeAt = 0, 0
	case *p.HoldEnded:
		if b.Settings != nil {
			s.TurnSettings = b.Settings.ForTurn()
			s.Size, s.SizeAt = 0, 0
		}
	case *p.Notice:
		if b.Warn {
			s.Warned[b.Text] = true
		}
	case *p.ApprovalResolved:
		if ask := s.Request(b.Call); ask != nil {
			s.Grants = withAnswer(s.Grants, b.Decision, ask)
		}
	case *p.TurnEnded:
		s.Ended = b.Reason
	}
	s.evolveProcesses(e.Body)
	s.evolvePatches(e.Body)
	s.evolveSummary(e)
	s.evolveOps(e)
}

// withAnswer returns the grants after an answer to a question.
func withAnswer(g policy.Grants, d p.Decision, ask *p.ApprovalRequested) policy.Grants {
	if ask.MCP != nil {
		return g.AnsweredTool(d, *ask.MCP)
	}
	return g.Answered(d, ask.Command, ask.Cwd)
}

func (s *State) evolveProcesses(b p.Body) {
	switch b := b.(type) {
	case *p.CommandStarted:
		s.Processes = append(s.Processes, Process{Call: b.Call, Handle: b.Process})
	case *p.BackgroundStarted:
		s.Processes = append(s.Processes, Process{Background: b.ID, Handle: b.Process})
	case *p.ToolOutput:
		s.Processes = slices.DeleteFunc(s.Processes, func(l Process) bool { return l.Background == 0 && l.Call == b.Call })
	case *p.BackgroundEnded:
		s.Processes = slices.DeleteFunc(s.Processes, func(l Process) bool { return l.Background == b.ID })
	}
}

func (s *State) evolvePatches(b p.Body) {
	switch b := b.(type) {
	case *p.PatchStarted:
		s.Patches = append(s.Patches, OpenPatch{PatchStarted: *b})
	case *p.PatchCommitted:
		if i := slices.IndexFunc(s.Patches, func(op OpenPatch) bool { return op.Patch == b.Patch }); i >= 0 {
			s.Patches[i].Committed = true
		}
	case *p.PatchSettled:
		i := slices.IndexFunc(s.Patches, func(op OpenPatch) bool { return op.Patch == b.Patch })
		if i >= 0 && b.Applied && s.Patches[i].Command != (p.CallID{}) && s.Patches[i].Back != nil {
			s.Applied = append(slices.Clip(s.Applied), s.Patches[i].Back)
		}
		s.closePatches(func(op OpenPatch) bool { return op.Patch == b.Patch })
	case *p.Undone:
		s.closePatches(func(op OpenPatch) bool { return op.Patch == b.Patch })
	case *p.TurnStarted:
		s.Applied = nil
	case *p.ToolOutput:
		i := slices.IndexFunc(s.Patches, func(op OpenPatch) bool { return op.Call == b.Call })
		if i >= 0 && b.Patch != nil && b.Patch.Applied && s.Patches[i].Back != nil {
			s.Applied = append(slices.Clip(s.Applied), s.Patches[i].Back)
		}
		if b.Patch != nil && !b.Patch.Unsettled {
			s.closePatches(func(op OpenPatch) bool { return op.Call == b.Call })
		}
	}
}

func (s *State) closePatches(which func(OpenPatch) bool) {
	s.Patches = slices.DeleteFunc(s.Patches, which)
}

func (s *State) evolveSummary(e p.Event) {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		s.Summary = p.TurnSummary{Conversation: s.ID, Turn: e.Turn, Cwd: s.TurnSettings.Cwd, OnlyShell: b.Shell, Began: e.Time}
	case *p.ModelRequested:
		s.Summary.OnlyShell = false
	case *p.UserMessage:
		s.Summary.Inputs = append(s.Summary.Inputs, p.PlainText(b.Content))
	case *p.AssistantMessage:
		s.Summary.Last = b.Text
	case *p.TurnEnded:
		s.Summary.Reason, s.Summary.Error = b.Reason, b.Error
		s.Summary.Took = e.Time.Sub(s.Summary.Began)
	}
}
