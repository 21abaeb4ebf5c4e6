package protocol

import "time"

// An Error is a failure in a form that can be recorded and shown: what
// happened, and what to do about it.
type Error struct {
	Kind    ErrorKind     `json:"kind"`
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitempty"`
	Retry   bool          `json:"retry,omitempty"`       // the same request may succeed later
	After   time.Duration `json:"retry_after,omitempty"` // how long the service asked to wait, in nanoseconds
	Call    *CallFault    `json:"call,omitempty"`        // for ErrorHistory: the call that is at fault, or
	Part    HistoryPart   `json:"part,omitempty"`        // the items that the service refuses
	Window  int64         `json:"window,omitempty"`      // for ErrorContextLength: how many tokens it takes, if it said so

	// Streaming says that the response had begun when it failed. Its retries are counted apart.
	Streaming bool `json:"streaming,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// A CallFault is what a provider says is wrong with one call of the history.
type CallFault struct {
	WireID string        `json:"wire_id"`
	Fault  CallFaultKind `json:"fault"`
}

// A CallFaultKind is a way in which a history can be invalid.
type CallFaultKind string

// The faults that providers report.
const (
	CallWithoutOutput CallFaultKind = "no_output"
	OutputWithoutCall CallFaultKind = "no_call"
	OutputTwice       CallFaultKind = "twice"
)

// A HistoryPart is a kind of items that a service may refuse.
type HistoryPart string

// The parts of a history that services refuse.
const (
	PartReasoning HistoryPart = "reasoning" // reasoning of an earlier response
	PartImages    HistoryPart = "images"
	PartOutputs   HistoryPart = "outputs" // long outputs of tools
)

// An ErrorKind groups errors by what can be done about them.
type ErrorKind string

// The kinds of error.
const (
	ErrorModel         ErrorKind = "model"          // the model service failed or answered nonsense
	ErrorConnection    ErrorKind = "connection"     // it could not be reached, or the stream broke
	ErrorAuth          ErrorKind = "auth"           // bad or missing key
	ErrorUsageLimit    ErrorKind = "usage_limit"    // nothing left to spend
	ErrorRateLimit     ErrorKind = "rate_limit"     // too fast
	ErrorContextLength ErrorKind = "context_length" // the conversation is too long for the model
	ErrorUnknownModel  ErrorKind = "unknown_model"  // no such model
	ErrorRequest       ErrorKind = "request"        // refused for another reason
	ErrorHistory       ErrorKind = "history"        // refused because of one call; Call says which
	ErrorJournal       ErrorKind = "journal"        // what happened can no longer be recorded
	ErrorTools         ErrorKind = "tools"          // tools that the configuration requires are not available
	ErrorInternal      ErrorKind = "internal"       // a defect of ours
)
