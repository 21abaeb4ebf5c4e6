package turn

import (
	"errors"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// Input is something that happened outside, which Decide turns into events.
type Input interface{ isInput() }

type (
	// User is a message from a client.
	User struct {
		Content   []p.Content
		WhenBusy  p.WhenBusy
		Overrides *p.Overrides
		Ref       string      // the client's own name for it
		Into      p.TurnID    // if set: the turn that it must join
		Returned  []p.InputID // returned messages that it delivers
	}

	// Shell is a command line of the user's own.
	Shell struct{ Command string }

	// Keep asks to keep the command of a running call running after the call was
	// answered. Started is without an ID.
	Keep struct{ Started p.BackgroundStarted }

	// BackgroundDone says that nothing of a background command runs any more.
	BackgroundDone struct {
		ID      p.BackgroundID
		Stopped bool // it did not end by itself
		Result  p.CommandResult
	}

	// Next asks whether a waiting message starts a turn now.
	Next struct{}

	// ReturnAll says that the messages that wait will not be delivered.
	ReturnAll struct{}

	// Compact starts a turn that compacts the history.
	Compact struct{}

	// Stop asks the turn to stop. Turn, if set, restricts it to that turn.
	Stop struct {
		Turn   p.TurnID
		Reason p.EndReason
		Error  *p.Error // for a reason of failed
	}

	// Approval is the answer to an open approval.
	Approval struct {
		Call     p.CallID
		Decision p.Decision
		Message  string
	}

	// Elicit says that a running call asks the person something; Elicited is an answer.
	Elicit   struct{ Request p.ElicitationRequested }
	Elicited struct{ Answer p.AnswerElicitation }

	// Edit changes a waiting message; Delete takes it back.
	Edit struct {
		Input   p.InputID
		Content []p.Content
	}
	Delete struct{ Input p.InputID }

	// Resolve says what became of messages that were returned.
	Resolve struct {
		Inputs []p.InputID
		As     p.Resolution
	}

	// ModelItem is an item that the model finished.
	ModelItem struct {
		Response int
		Index    int
		Body     p.Body // an AssistantMessage, a Reasoning or a ToolCall
	}

	// ModelDone says that the model's response is over.
	ModelDone struct {
		Response int
		Usage    *p.Usage
		Error    *p.Error
		Open     []Partial // items of the response that were not finished
		Summary  string    // what it said, if it was asked for a summary
		// Refused is, for an error about one call, what the history knows of it.
		Refused *Refused
	}

	// RetryDue says that the wait before a retry is over.
	RetryDue struct{}

	// HoldDue says that the limit which the turn waits for is lifted.
	HoldDue struct{}

	// TryNow asks to end a hold. Settings, if set, are those of the turn from now on.
	TryNow struct{ Settings *p.Settings }

	// ToolAsked says that a call must be approved before it can run.
	ToolAsked struct {
		Request p.ApprovalRequested
	}

	// ToolDone says that a call is over.
	ToolDone struct {
		Output p.ToolOutput
		NotRun bool // the turn was stopped before it began
		Diff   *p.TurnDiff
	}

	// Lost says that the turn's workers are gone, or given up: after a crash, or
	// when they have not stopped in time.
	Lost struct {
		Open   []Partial
		Killed int // processes that were found and ended
		// Patches are the outcomes of the patches of calls that were interrupted.
		Patches map[p.CallID]p.PatchResult
		Crash   bool // found when the conversation was opened
		All     bool // background commands of other turns are given up as well
	}
)

func (User) isInput()           {}
func (Next) isInput()           {}
func (ReturnAll) isInput()      {}
func (Shell) isInput()          {}
func (Keep) isInput()           {}
func (BackgroundDone) isInput() {}
func (Compact) isInput()        {}
func (Stop) isInput()           {}
func (Approval) isInput()       {}
func (Elicit) isInput()         {}
func (Elicited) isInput()       {}
func (Edit) isInput()           {}
func (Delete) isInput()         {}
func (Resolve) isInput()        {}
func (ModelItem) isInput()      {}
func (ModelDone) isInput()      {}
func (RetryDue) isInput()       {}
func (HoldDue) isInput()        {}
func (TryNow) isInput()         {}
func (ToolAsked) isInput()      {}
func (ToolDone) isInput()       {}
func (Lost) isInput()           {}

// A Partial is what there is of an item that was not finished.
type Partial struct {
	Item   p.ItemID
	Kind   p.DeltaKind // message or reasoning; stdout for the output of a command
	Text   string
	Stderr [][2]int // for output: the ranges of Text that are stderr
}

// Refused is what the history knows of a call that a provider complains about.
type Refused struct {
	Call     p.CallID
	Answered bool // it has an output
}

// Env is what Decide has to know in addition to the state and the input.
type Env struct {
	Now     time.Time
	Lane    func(Call) Lane // what a call may run beside; nil is nothing
	Retries func() Retries  // how often a failed request is made again
	Wait    func(attempt int, err *p.Error) time.Duration
	MaxWait time.Duration // a service that asks to wait for longer has reached a limit; 0 is 60 s
	OnLimit p.OnLimit     // what becomes of the turn then

	// MaxParallel is how many calls run at the same time. With 1, or 0, they run one at a time and in order.
	MaxParallel int

	Room Room
}

// Room is what is known of how long a request is, and may be. The zero value knows
// nothing.
type Room struct {
	// Size estimates how many tokens the next request has, with some messages added.
	Size func(added ...[]p.Content) int64

	Window   int64 // tokens that the model takes; 0 if not known
	Overhead int64 // tokens of a request without a history
	Keep     int64 // tokens of the user's messages that a compaction keeps
	Grown    bool  // enough was said since the last compaction to make another worth it

	LocalSummary func() string // for when the service makes none
	LeastSummary int           // bytes that a summary has to have; a shorter one is asked for once more
}

// Retries is how often a failed request is made again: if it failed before its response began, and if
// the response broke off. See decision.retry.
type Retries struct{ Request, Stream int }

// What Decide answers to an input that does not fit the state.
var (
	ErrNothingToStop = errors.New("nothing to stop")
	ErrStopping      = errors.New("already stopping")
	ErrNoApproval    = errors.New("that approval is no longer open")
	ErrNoElicitation = errors.New("that question is no longer open")
	ErrNoInput       = errors.New("that message is no longer waiting")
	ErrNotReturned   = errors.New("that message is no longer returned: it was sent, taken or dropped")
	ErrEmptyResolve  = errors.New("no returned message is named")
	ErrResolution    = errors.New("not taken or dropped")
	ErrBusy          = errors.New("a turn is running")
	ErrEmpty         = errors.New("the message is empty")
	ErrWhenBusy      = errors.New("not steer, queue or replace")
	ErrSteerSettings = errors.New("a message that joins a running turn cannot change its settings: queue it instead")
	ErrNotSteerable  = errors.New("the turn to steer is not running, or takes no messages")
	ErrDecision      = errors.New("unknown decision")
	ErrNoBackground  = errors.New("no such background command is running")
	ErrNoHold        = errors.New("the turn does not wait for a limit")
)
