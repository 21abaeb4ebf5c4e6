package protocol

import (
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// An Event is one fact about a conversation. Durable events are numbered
// without gaps and are never taken back: a client sees one only when it is
// safely recorded. A [Delta] has no number.
type Event struct {
	Seq     Seq
	Time    time.Time
	Turn    TurnID // 0 if the event belongs to no turn
	Body    Body
	Unsaved bool // the journal failed: this event is only in memory
}

// Body is implemented by every kind of event.
type Body interface{ isBody() }

// What happens to a conversation as a whole.
type (
	// ConversationStarted is the first event of every conversation.
	ConversationStarted struct {
		ID       ConversationID `json:"id"`
		Version  string         `json:"version,omitempty"` // of the program that made it
		Settings Settings       `json:"settings"`
		Fork     *ForkPoint     `json:"fork,omitempty"`
	}

	// Configured says that the settings changed.
	Configured struct {
		Settings Settings `json:"settings"`
		Cause    `json:"by,omitzero"`
	}

	// Renamed says that the conversation got a title.
	Renamed struct {
		Title string `json:"title"`
		Cause `json:"by,omitzero"`
	}

	// Reverted says that the given turn and all after it are no longer part of
	// what the model is sent.
	Reverted struct {
		Before TurnID `json:"before"`
		Cause  `json:"by,omitzero"`
	}

	// Compacted says that the model is from now on sent Summary in place of
	// everything before it, with the messages of the user as far as they fit into Keep.
	Compacted struct {
		Summary string `json:"summary"`
		Local   bool   `json:"local,omitempty"` // made from the records: the service did not make one
		Keep    int64  `json:"keep,omitempty"`  // tokens of the user's own messages that are kept verbatim
	}

	// HistoryReduced says that a service refused items of the history, and that the
	// model is from now on sent the history without them.
	HistoryReduced struct {
		Part HistoryPart `json:"part"`
	}

	// Undone says that the files which a turn changed were put back.
	Undone struct {
		Of    TurnID   `json:"of"`
		Patch string   `json:"patch"` // the PatchStarted that did it
		Files []string `json:"files"`
		Cause `json:"by,omitzero"`
	}

	// Notice is a remark for people: what was repaired, what cannot be done here.
	Notice struct {
		Text string `json:"text"`
		Warn bool   `json:"warn,omitempty"`
	}

	// Damaged stands for a record that could not be read back.
	Damaged struct {
		Bytes int64  `json:"bytes"` // how much was set aside
		File  string `json:"file"`  // where to
	}
)

// A ForkPoint says which conversation was copied, and up to which event.
type ForkPoint struct {
	ID  ConversationID `json:"id"`
	Seq Seq            `json:"seq"`
}

// The life of a turn.
type (
	// TurnStarted begins a turn.
	TurnStarted struct {
		Compact bool `json:"compact,omitempty"` // a turn that only compacts
		Shell   bool `json:"shell,omitempty"`   // a turn that runs a command of the user's own
		Cause   `json:"by,omitzero"`
	}

	// InputAccepted says that a message arrived while a turn ran, and waits.
	InputAccepted struct {
		Input   InputID   `json:"input"`
		Mode    WhenBusy  `json:"mode"`
		Content []Content `json:"content"`
		After   bool      `json:"after,omitempty"` // arrived after the stop was asked for
		// Overrides take effect with the turn that the message starts.
		Overrides *Overrides `json:"overrides,omitempty"`
		Ref       string     `json:"ref,omitempty"` // the client's own name for the message
		Cause     `json:"by,omitzero"`
	}

	// InputEdited says that a waiting message was changed.
	InputEdited struct {
		Input   InputID   `json:"input"`
		Content []Content `json:"content"`
		Cause   `json:"by,omitzero"`
	}

	// InputReturned returns waiting messages: they were not delivered. See ReturnedInput.
	InputReturned struct {
		Inputs []ReturnedInput `json:"inputs"`
		Left   int             `json:"left,omitempty"` // how many messages are returned now; see ReturnedResolved
		Cause  `json:"by,omitzero"`
	}

	// UserMessage is a message that entered the conversation.
	UserMessage struct {
		Item    ItemID    `json:"item"`
		Input   InputID   `json:"input"`
		Content []Content `json:"content"`
		Ref     string    `json:"ref,omitempty"` // the client's own name for it
		Cause   `json:"by,omitzero"`
	}

	// ModelRequested says that a request goes to the model. Prompt messages
	// between the requests are not repeated here: they are the events before it.
	ModelRequested struct {
		Response int  `json:"response"`          // which of the turn: 1, 2, …
		Compact  bool `json:"compact,omitempty"` // it asks for a summary, to continue from
		// Limit, if set, is how many tokens the request may have: the oldest outputs
		// are shortened, or left out, until it fits.
		Limit int64 `json:"limit,omitempty"`
	}

	// AssistantMessage is a message from the model.
	AssistantMessage struct {
		Item    ItemID `json:"item"`
		Text    string `json:"text"`
		Partial bool   `json:"partial,omitempty"` // it ends where it was interrupted
		Raw     Raw    `json:"raw,omitzero"`
	}

	// Reasoning is a summary of what the model thought.
	Reasoning struct {
		Item    ItemID `json:"item"`
		Text    string `json:"text"`
		Partial bool   `json:"partial,omitempty"`
		Raw     Raw    `json:"raw,omitzero"`
	}

	// ToolCall says that the model asks for a tool. It has exactly one ToolOutput.
	ToolCall struct {
		Call      CallID   `json:"call"`
		WireID    string   `json:"wire_id"`
		Kind      CallKind `json:"kind"`
		Name      string   `json:"name"`
		Arguments string   `json:"arguments"`
		Raw       Raw      `json:"raw,omitzero"`
	}

	// ModelEnded says that a response is over, and how.
	ModelEnded struct {
		Response int    `json:"response"`
		Usage    *Usage `json:"usage,omitempty"`
		Error    *Error `json:"error,omitempty"`
	}

	// ModelRetry says that a failed request will be made again after a wait.
	ModelRetry struct {
		Attempt int           `json:"attempt"` // 1 for the first retry
		Max     int           `json:"max"`
		Stream  bool          `json:"stream,omitempty"` // it is one of those for broken streams
		Wait    time.Duration `json:"wait"`             // nanoseconds
		Reason  string        `json:"reason"`
	}

	// Held says that the turn waits because a limit of the service is reached. Nothing
	// runs until the limit is lifted, if the turn resumes by itself, or a client acts.
	Held struct {
		Error  Error     `json:"error"`
		Until  time.Time `json:"until,omitzero"`   // when the limit is lifted, if the service said so
		Resume bool      `json:"resume,omitempty"` // the turn resumes by itself then
	}

	// HoldEnded says that the request is made again.
	HoldEnded struct {
		Settings *Settings `json:"settings,omitempty"` // of the turn from now on, if they changed
		Cause    `json:"by,omitzero"`
	}

	// CallStarted says that a call is handed to its tool.
	CallStarted struct {
		Call CallID `json:"call"`
		// Grant is the decision that allowed it, if a client was asked.
		Grant Decision `json:"grant,omitempty"`
		// Lane says what it may run beside: empty is nothing. See turn.Lane.
		Lane string `json:"lane,omitempty"`
	}

	// ApprovalRequested says that a call waits for a person.
	ApprovalRequested struct {
		Call    CallID          `json:"call"`
		Kind    ApprovalKind    `json:"kind"`
		Command []string        `json:"command,omitempty"`
		Cwd     string          `json:"cwd,omitempty"`
		Reason  string          `json:"reason,omitempty"`
		Detail  json.RawMessage `json:"detail,omitempty"` // the changes of a patch
		Tried   *CommandResult  `json:"tried,omitempty"`  // it has run in the sandbox, and would run again without
		MCP     *MCPTool        `json:"mcp,omitempty"`    // the tool of an MCP server; its arguments are those of the call
		// RefusedFor is what the call would be refused for if no client could be asked. Earlier versions did not record it.
		RefusedFor RefusalReason `json:"refused_for,omitempty"`
	}

	// ApprovalResolved says how an approval ended.
	ApprovalResolved struct {
		Call     CallID   `json:"call"`
		Decision Decision `json:"decision"`
		Message  string   `json:"message,omitempty"`
		Cause    `json:"by,omitzero"`
	}

	// CommandStarted says that a process is about to run for a call.
	CommandStarted struct {
		Call    CallID          `json:"call"`
		Command []string        `json:"command"`
		Cwd     string          `json:"cwd"`
		Process json.RawMessage `json:"process,omitempty"` // how to find it after a crash
	}

	// ServerCallStarted says that a tool of an MCP server is about to be called.
	ServerCallStarted struct {
		Call      CallID          `json:"call"`
		Tool      MCPTool         `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"` // an object
	}

	// PatchStarted says that a patch is about to be written. How it went is in
	// the ToolOutput of its call, or in a PatchSettled or Undone that names it.
	PatchStarted struct {
		Patch  string `json:"patch"`            // its own name, since an undo belongs to no call
		Call   CallID `json:"call,omitzero"`    // none for an undo
		Undoes TurnID `json:"undoes,omitempty"` // for an undo: the turn whose files are put back
		// Command, instead of Call, is the call whose command asked for the patch. How it went is
		// in a PatchSettled, and the output of the call is that of the command.
		Command CallID          `json:"command,omitzero"`
		Cwd     string          `json:"cwd,omitempty"`
		Changes json.RawMessage `json:"changes,omitempty"` // by absolute path
		// AutoApproved says that no approval was needed.
		AutoApproved bool            `json:"auto_approved,omitempty"`
		Record       json.RawMessage `json:"record,omitempty"` // how to settle it after a crash
		Back         json.RawMessage `json:"back,omitempty"`   // how to take it back later
		Cause        `json:"by,omitzero"`
	}

	// PatchCommitted says that all is ready: from here on the patch happens,
	// also if the program dies.
	PatchCommitted struct {
		Patch string `json:"patch"`
		Call  CallID `json:"call,omitzero"`
		Cause `json:"by,omitzero"`
	}

	// PatchSettled says what became of a patch whose call was answered before
	// that was known, or that a command asked for.
	PatchSettled struct {
		Patch   string `json:"patch"`
		Call    CallID `json:"call,omitzero"`
		Applied bool   `json:"applied"`
		Cause   `json:"by,omitzero"`
	}

	// TurnDiff is what the turn has changed in files so far.
	TurnDiff struct {
		Diff  string     `json:"diff"`            // in git's format; empty if it took everything back
		Trees *TreeRange `json:"trees,omitempty"` // if commands are covered as well
	}

	// PlanUpdated is the model's list of steps.
	PlanUpdated struct {
		Call        CallID     `json:"call"`
		Explanation string     `json:"explanation,omitempty"`
		Plan        []PlanStep `json:"plan"`
	}

	// ToolOutput answers a call.
	ToolOutput struct {
		Call    CallID         `json:"call"`
		Output  string         `json:"output"`            // what the model is sent
		Content []Content      `json:"content,omitempty"` // images for the model
		Failed  bool           `json:"failed,omitempty"`
		Aborted bool           `json:"aborted,omitempty"` // interrupted by a stop or a crash, or never run
		Command *CommandResult `json:"command,omitempty"` // if it ran a process
		Patch   *PatchResult   `json:"patch,omitempty"`   // if it was a patch
		MCP     *MCPResult     `json:"mcp,omitempty"`     // if an MCP server answered it, or failed to
		Elapsed time.Duration  `json:"elapsed,omitempty"` // nanoseconds
		// Refused says, for people, why policy or the sandbox kept the call from being carried
		// out, if no client was asked about it.
		Refused string `json:"refused,omitempty"`
		// RefusedFor is what kind of reason that is. Earlier versions did not record it.
		RefusedFor RefusalReason `json:"refused_for,omitempty"`
		// Repaired says that the answer was missing and added later.
		Repaired bool `json:"repaired,omitempty"`
		// Repairs says what had to be repaired in the call before it could be
		// carried out, for people.
		Repairs []string `json:"repairs,omitempty"`
	}

	// HistoryRepaired says that a provider refused the history because of one
	// call, and that the request is made again.
	HistoryRepaired struct {
		WireID string        `json:"wire_id"`
		Fault  CallFaultKind `json:"fault"`
		// UnknownCall says that the history does not know the call, and that this
		// turn's requests carry an output for it all the same.
		UnknownCall bool `json:"lone,omitempty"`
	}

	// StopRequested says that a client asked the turn to stop.
	StopRequested struct {
		Reason EndReason `json:"reason"`
		Error  *Error    `json:"error,omitempty"` // for failed
		Cause  `json:"by,omitzero"`
	}

	// TurnEnded is the last event of a turn, always and exactly one.
	TurnEnded struct {
		Reason  EndReason     `json:"reason"`
		Error   *Error        `json:"error,omitempty"`
		Killed  int           `json:"killed,omitempty"`  // processes ended by the stop
		Repairs int           `json:"repairs,omitempty"` // made in calls that the model got wrong
		Elapsed time.Duration `json:"elapsed"`           // nanoseconds
		Usage   *Usage        `json:"usage,omitempty"`   // of the conversation so far, so that lists need not read all of it
		// Returned is how many messages are returned, for the same reason.
		Returned int `json:"returned,omitempty"`
	}
)

// The life of a background command: one that keeps running after its call was
// answered. It belongs to the conversation, so that its events have no turn; its
// output is in the deltas of [BackgroundID.Item].
type (
	// BackgroundStarted says that the command of a call has become a background
	// command.
	BackgroundStarted struct {
		ID      BackgroundID    `json:"id"`
		Call    CallID          `json:"call"` // which started it
		Command []string        `json:"command"`
		Cwd     string          `json:"cwd"`
		Process json.RawMessage `json:"process,omitempty"` // how to find it after a crash
	}

	// BackgroundStopRequested says that a client wants it to end.
	BackgroundStopRequested struct {
		ID    BackgroundID `json:"id"`
		Cause `json:"by,omitzero"`
	}

	// BackgroundEnded says that nothing of it runs any more, always and exactly
	// once. The reason is completed if it ended by itself, interrupted if it was
	// stopped, crashed if it was found when the conversation was opened.
	BackgroundEnded struct {
		ID     BackgroundID  `json:"id"`
		Reason EndReason     `json:"reason"`
		Result CommandResult `json:"result"` // its output is what it printed since BackgroundStarted
	}
)

// A PlanStep is one line of a plan.
type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed
}

// An EndReason says why a turn ended.
type EndReason string

// The end reasons.
const (
	Completed   EndReason = "completed"
	Failed      EndReason = "failed"
	Interrupted EndReason = "interrupted"
	Replaced    EndReason = "replaced"
	Crashed     EndReason = "crashed"
)

// A RefusalReason says what kept a call from being carried out, so that people can be shown how to
// allow it. An empty one is not known.
type RefusalReason string

// The reasons of refusals.
const (
	RefusedByPlanMode RefusalReason = "plan_mode" // nothing is changed until the plan is accepted
	RefusedByRule     RefusalReason = "rule"      // a rule of the user forbids it
	RefusedBySandbox  RefusalReason = "sandbox"   // the sandbox denied it something, or it may not leave it
	RefusedPath       RefusalReason = "path"      // nothing may be written to one of its paths
	RefusedUnasked    RefusalReason = "unasked"   // it needs an approval
	RefusedTool       RefusalReason = "tool"      // a tool of an MCP server, which needs an approval
	RefusedQuestion   RefusalReason = "question"  // an MCP server asked something, and the answer was no
)

// An ApprovalKind says what an approval is about.
type ApprovalKind string

// The kinds of approval.
const (
	ApproveCommand ApprovalKind = "command"
	ApprovePatch   ApprovalKind = "patch"
	ApproveTool    ApprovalKind = "tool" // a tool of an MCP server
)

// A Delta is a piece of an item that is not finished yet. It has no number: a
// client that knows an item up to an offset is given what follows it, and one
// that attaches in mid-sentence gets everything so far in one piece.
type Delta struct {
	Item   ItemID    `json:"item"`
	Kind   DeltaKind `json:"kind"`
	Offset int64     `json:"offset"` // in bytes; a jump means that a part was left out
	Text   string    `json:"text"`   // what a command prints need not be UTF-8
}

// A DeltaKind says what a Delta is a piece of.
type DeltaKind string

// The kinds of delta.
const (
	DeltaMessage   DeltaKind = "message"
	DeltaReasoning DeltaKind = "reasoning"
	DeltaStdout    DeltaKind = "stdout"
	DeltaStderr    DeltaKind = "stderr"
	DeltaProgress  DeltaKind = "progress" // a line about how far a call is, which is no part of its output
)

func (*ConversationStarted) isBody()     {}
func (*Configured) isBody()              {}
func (*Renamed) isBody()                 {}
func (*Reverted) isBody()                {}
func (*Compacted) isBody()               {}
func (*HistoryReduced) isBody()          {}
func (*Held) isBody()                    {}
func (*HoldEnded) isBody()               {}
func (*Undone) isBody()                  {}
func (*Notice) isBody()                  {}
func (*Damaged) isBody()                 {}
func (*TurnStarted) isBody()             {}
func (*InputAccepted) isBody()           {}
func (*InputEdited) isBody()             {}
func (*InputReturned) isBody()           {}
func (*UserMessage) isBody()             {}
func (*ModelRequested) isBody()          {}
func (*AssistantMessage) isBody()        {}
func (*Reasoning) isBody()               {}
func (*ToolCall) isBody()                {}
func (*ModelEnded) isBody()              {}
func (*ModelRetry) isBody()              {}
func (*CallStarted) isBody()             {}
func (*ApprovalRequested) isBody()       {}
func (*ApprovalResolved) isBody()        {}
func (*CommandStarted) isBody()          {}
func (*ServerCallStarted) isBody()       {}
func (*PatchStarted) isBody()            {}
func (*PatchCommitted) isBody()          {}
func (*PatchSettled) isBody()            {}
func (*TurnDiff) isBody()                {}
func (*PlanUpdated) isBody()             {}
func (*ToolOutput) isBody()              {}
func (*HistoryRepaired) isBody()         {}
func (*StopRequested) isBody()           {}
func (*TurnEnded) isBody()               {}
func (*BackgroundStarted) isBody()       {}
func (*BackgroundStopRequested) isBody() {}
func (*BackgroundEnded) isBody()         {}
func (*Delta) isBody()                   {}

// kinds gives each kind of event its name on the wire and in the journal.
var kinds = []struct {
	name string
	make func() Body
}{
	{"conversation_started", func() Body { return new(ConversationStarted) }},
	{"configured", func() Body { return new(Configured) }},
	{"renamed", func() Body { return new(Renamed) }},
	{"reverted", func() Body { return new(Reverted) }},
	{"compacted", func() Body { return new(Compacted) }},
	{"undone", func() Body { return new(Undone) }},
	{"imported", func() Body { return new(Imported) }},
	{"notice", func() Body { return new(Notice) }},
	{"damaged", func() Body { return new(Damaged) }},
	{"turn_started", func() Body { return new(TurnStarted) }},
	{"input_accepted", func() Body { return new(InputAccepted) }},
	{"input_edited", func() Body { return new(InputEdited) }},
	{"input_returned", func() Body { return new(InputReturned) }},
	{"returned_resolved", func() Body { return new(ReturnedResolved) }},
	{"user_message", func() Body { return new(UserMessage) }},
	{"model_requested", func() Body { return new(ModelRequested) }},
	{"assistant_message", func() Body { return new(AssistantMessage) }},
	{"reasoning", func() Body { return new(Reasoning) }},
	{"tool_call", func() Body { return new(ToolCall) }},
	{"model_ended", func() Body { return new(ModelEnded) }},
	{"model_retry", func() Body { return new(ModelRetry) }},
	{"held", func() Body { return new(Held) }},
	{"hold_ended", func() Body { return new(HoldEnded) }},
	{"history_reduced", func() Body { return new(HistoryReduced) }},
	{"call_started", func() Body { return new(CallStarted) }},
	{"approval_requested", func() Body { return new(ApprovalRequested) }},
	{"approval_resolved", func() Body { return new(ApprovalResolved) }},
	{"command_started", func() Body { return new(CommandStarted) }},
	{"server_call_started", func() Body { return new(ServerCallStarted) }},
	{"elicitation_requested", func() Body { return new(ElicitationRequested) }},
	{"elicitation_resolved", func() Body { return new(ElicitationResolved) }},
	{"patch_started", func() Body { return new(PatchStarted) }},
	{"patch_committed", func() Body { return new(PatchCommitted) }},
	{"patch_settled", func() Body { return new(PatchSettled) }},
	{"turn_diff", func() Body { return new(TurnDiff) }},
	{"plan_updated", func() Body { return new(PlanUpdated) }},
	{"tool_output", func() Body { return new(ToolOutput) }},
	{"history_repaired", func() Body { return new(HistoryRepaired) }},
	{"stop_requested", func() Body { return new(StopRequested) }},
	{"turn_ended", func() Body { return new(TurnEnded) }},
	{"background_started", func() Body { return new(BackgroundStarted) }},
	{"background_stop_requested", func() Body { return new(BackgroundStopRequested) }},
	{"background_ended", func() Body { return new(BackgroundEnded) }},
	{"delta", func() Body { return new(Delta) }},
}

// A kindTable finds kinds by type and by name.
type kindTable struct {
	names map[reflect.Type]string
	makes map[string]func() Body
}

var kindsBy = sync.OnceValue(func() kindTable {
	t := kindTable{map[reflect.Type]string{}, map[string]func() Body{}}
	for _, k := range kinds {
		t.names[reflect.TypeOf(k.make())] = k.name
		t.makes[k.name] = k.make
	}
	return t
})
