package protocol

// Op is implemented by every request that a client can make of a conversation.
type Op interface{ isOp() }

type (
	// UserTurn is a message from the user. When the conversation is idle it
	// starts a turn; otherwise WhenBusy says what becomes of it.
	UserTurn struct {
		Content   []Content  `json:"content"`
		WhenBusy  WhenBusy   `json:"when_busy,omitempty"`
		Overrides *Overrides `json:"overrides,omitempty"` // for the turn it starts and those after it
		Ref       string     `json:"ref,omitempty"`       // the client's own name for it, which events repeat

		// Returned are messages that were returned and that this one delivers: they are resolved as sent, in one
		// batch with it. Without Content, theirs is sent. If one is no longer returned, nothing is sent.
		Returned []InputID `json:"returned,omitempty"`

		// Into, if set, restricts it to a running turn: a message that cannot join that turn is refused.
		Into TurnID `json:"into,omitempty"`
	}

	// UserShell runs a command line of the user's own, in a turn without a model
	// request. The model is sent it with the next message. Only an idle
	// conversation takes it.
	UserShell struct {
		Command string `json:"command"`
	}

	// KillBackground ends a background command.
	KillBackground struct {
		ID BackgroundID `json:"id"`
	}

	// Interrupt stops the turn that is active when it is read. Turn, if set,
	// restricts it to that turn, so that a late one cannot hit the next.
	Interrupt struct {
		Turn   TurnID    `json:"turn,omitempty"`
		Reason EndReason `json:"reason,omitempty"` // interrupted unless given
	}

	// Approve answers an open approval.
	Approve struct {
		Call     CallID   `json:"call"`
		Decision Decision `json:"decision"`
		Message  string   `json:"message,omitempty"` // from the user to the model
	}

	// Configure changes the settings of the turns to come.
	Configure struct {
		Overrides Overrides `json:"overrides"`
	}

	// TryNow ends a hold: the request is made again at once, with other settings if
	// Overrides are given.
	TryNow struct {
		Overrides *Overrides `json:"overrides,omitempty"`
	}

	// Compact replaces what the model is sent by a summary, in a turn of its own.
	Compact struct{}

	// Rename gives the conversation a title.
	Rename struct {
		Title string `json:"title"`
	}

	// Revert takes the given turn and all after it out of what the model is
	// sent. Only an idle conversation can be reverted.
	Revert struct {
		Before TurnID `json:"before"`
	}

	// Undo records one step of putting the files of a turn back: what will be
	// written, that it is decided, or that it is done. The client does the
	// writing. Only an idle conversation takes it.
	Undo struct {
		Started   *PatchStarted   `json:"started,omitempty"`
		Committed *PatchCommitted `json:"committed,omitempty"`
		Settled   *PatchSettled   `json:"settled,omitempty"`
		Done      *Undone         `json:"done,omitempty"`
	}

	// EditInput changes a message that has been accepted and not yet consumed.
	EditInput struct {
		Input   InputID   `json:"input"`
		Content []Content `json:"content"`
	}

	// DeleteInput takes back a message that has been accepted and not yet consumed.
	DeleteInput struct {
		Input InputID `json:"input"`
	}
)

func (UserTurn) isOp()       {}
func (UserShell) isOp()      {}
func (KillBackground) isOp() {}
func (Interrupt) isOp()      {}
func (Approve) isOp()        {}
func (Configure) isOp()      {}
func (TryNow) isOp()         {}
func (Compact) isOp()        {}
func (Rename) isOp()         {}
func (Revert) isOp()         {}
func (Undo) isOp()           {}
func (EditInput) isOp()      {}
func (DeleteInput) isOp()    {}

// WhenBusy says what becomes of a message that arrives while a turn runs, also if that
// only waits for an approval. The zero value steers, or queues a message with settings of its own.
type WhenBusy string

// The ways to treat a message that arrives while a turn runs.
const (
	Steer   WhenBusy = "steer"   // joins the running turn at its next model request
	Queue   WhenBusy = "queue"   // starts by itself after a turn that completed or failed
	Replace WhenBusy = "replace" // stops the turn and starts the next
)

// A Decision answers an approval.
type Decision string

// The decisions. Cancelled is what the engine records when a stop or a crash
// ended the turn before anybody answered; clients do not send it.
const (
	Approved           Decision = "approved"
	ApprovedForSession Decision = "approved_for_session"
	Denied             Decision = "denied"
	Abort              Decision = "abort"
	Cancelled          Decision = "cancelled"
)

// A Receipt says that an op was accepted and recorded.
type Receipt struct {
	Turn  TurnID  `json:"turn"`            // the turn it concerns; 0 for none
	Seq   Seq     `json:"seq"`             // the last event recorded when it was taken
	Input InputID `json:"input,omitempty"` // for a UserTurn: the message's number
	State Taken   `json:"state,omitempty"` // for a UserTurn: what became of it
}

// Taken says what became of a UserTurn when it was accepted.
type Taken string

// What can become of a message.
const (
	TakenStarted Taken = "started" // it started Receipt.Turn
	TakenSteered Taken = "steered" // it will join Receipt.Turn
	TakenQueued  Taken = "queued"  // it will start a turn after Receipt.Turn
)
