// Package tool holds what a model can call. A [Tool] is one thing that can be
// called; there is one file for each built-in.
//
// A tool gets a context and returns a result. When its context ends it stops
// what it began, as far as that can be done, and returns; it has no goroutine left
// when it returns. It never changes a conversation: it returns an [Output], or
// asks for an approval and is run again when that was given.
//
// A conversation has a list of tools. [Offered] are those that the model is
// sent; the others are there for models that call them all the same. [Find] takes
// the names that models write, and [Run] records what had to be repaired.
package tool

import (
	"context"
	"encoding/json"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// A Tool is something the model can call.
type Tool interface {
	// Spec describes the tool to the model.
	Spec() model.ToolSpec

	// ReadOnly reports that calls change nothing, so that they may run side by side.
	ReadOnly() bool

	// Run carries out one call.
	Run(ctx context.Context, call Call) Result
}

// planMode is what a model hears that tries to change something in plan mode.
const planMode = "plan mode is on, and nothing is changed until the user accepts the plan"

// A Call is one call to carry out.
type Call struct {
	ID        protocol.CallID
	WireID    string
	Name      string
	Arguments string
	Grant     protocol.Decision // the approval it was given, if it asked for one
	Asked     json.RawMessage   // the Detail of what it asked
	Grants    policy.Grants     // what was approved for the session
	Settings  protocol.Settings
	Patches   []json.RawMessage // what the patches that this turn has applied kept (Back), in order
	Warned    map[string]bool   // warnings that the conversation has had
	Host      Host

	// Background are the background commands of the conversation, those that
	// ended among them.
	Background map[protocol.BackgroundID]Background

	inCommand bool      // it is a patch that the command of the call asks for
	repairs   *[]string // collects what was repaired in the arguments; may be nil
}

// parse reads the arguments. If they cannot be used, the second result is the
// answer.
func (c Call) parse(s *args.Schema) (args.Values, *Result) {
	v, err := s.Parse(c.Arguments)
	c.noteRepair(v.Repairs...)
	if err != nil {
		r := failure(err.Error())
		return v, &r
	}
	return v, nil
}

// noteRepair notes what had to be repaired before the call could be carried out.
func (c Call) noteRepair(notes ...string) {
	if c.repairs != nil {
		*c.repairs = append(*c.repairs, notes...)
	}
}

// A Host is what a tool may use of the conversation it works for.
type Host interface {
	// Write shows a piece of the call's output as it arrives. Invalid UTF-8 must
	// have been replaced.
	Write(kind protocol.DeltaKind, text string)

	// Record adds an event to the conversation and returns when it is durable, or
	// with an error if it never will be or ctx ends. What an event describes must not be done
	// before Record has returned.
	Record(ctx context.Context, body protocol.Body) error

	// Keep makes the command of this call a background command: from then on the
	// conversation stops it and waits for it, and the call may return. What it
	// prints is to go to the returned function. An error says that it was not
	// taken over: the call has to end it.
	Keep(ctx context.Context, started protocol.BackgroundStarted, b Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error)

	// Output returns what the command of an earlier call has printed, as far as it
	// is recorded.
	Output(ctx context.Context, call protocol.CallID) (string, error)
}

// An Elicitor is a Host that can ask the person something while a call runs.
type Elicitor interface {
	// Elicit records the question, with the call and a number filled in, and waits for its
	// answer. If ctx ends first the question is cancelled.
	Elicit(ctx context.Context, request protocol.ElicitationRequested) (protocol.ElicitationResolved, error)
}

// A Warner is a Host that keeps warnings from being repeated.
type Warner interface {
	// Warn records a notice like Host.Record, unless the conversation has had it.
	Warn(ctx context.Context, note *protocol.Notice) error
}

// A Background is a command that goes on after its call was answered.
type Background interface {
	// Stop ends it and everything it started. It does not wait.
	Stop(cause error)

	// Wait returns how it ended, and whether it was stopped, when nothing of
	// it runs any more.
	Wait() (result protocol.CommandResult, stopped bool)
}

// A Result is how a run ended: an output, or a question.
type Result struct {
	Output protocol.ToolOutput // Call is filled in by the caller

	// Diff, if set, is what the turn has changed in files so far.
	Diff *protocol.TurnDiff

	// Ask, if set, says that a client has to be asked first. Output is then
	// ignored, and the call is run again with the Grant it was given.
	Ask *protocol.ApprovalRequested
}

// failure is the result of a call that was not carried out.
func failure(text string) Result {
	return Result{Output: protocol.ToolOutput{Output: text, Failed: true}}
}

// refusal is the answer to a call that policy did not let run.
func refusal(call Call, reason protocol.RefusalReason, text string) Result {
	r := failure(text)
	if call.Grant == "" { // else a client has denied it
		r.Output.Refused, r.Output.RefusedFor = text, reason
	}
	return r
}

// refusalBy is the result of a call that a ruling refuses.
func refusalBy(call Call, r policy.Ruling) Result {
	out := refusal(call, r.Reason, r.Text)
	if r.Why != "" && out.Output.Refused != "" {
		out.Output.Refused = r.Why
	}
	return out
}

// Run carries out a call of a tool and notes in the output what had to be
// repaired in it.
func Run(ctx context.Context, t Tool, call Call) Result {
	var repairs []string
	call.repairs = &repairs
	if name := t.Spec().Name; name != call.Name {
		call.noteRepair("took " + call.Name + " for " + name)
	}
	res := t.Run(ctx, call)
	res.Output.Repairs = repairs
	return res
}
