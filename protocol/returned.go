package protocol

// A ReturnedInput is a message that was not delivered.
type ReturnedInput struct {
	Input   InputID   `json:"input"`
	Mode    WhenBusy  `json:"mode"`
	Content []Content `json:"content"`
	Deleted bool      `json:"deleted,omitempty"` // because a client took it back
	Ref     string    `json:"ref,omitempty"`     // the client's own name for it

	// Stays says that it stays returned until a ReturnedResolved names it. Earlier versions did
	// not record it: there a returned message counted as done when the next turn started.
	Stays bool `json:"stays,omitempty"`
}

type (
	// ReturnedResolved says what became of messages that were returned, always and exactly
	// once for each that stays returned. It belongs to no turn.
	ReturnedResolved struct {
		Inputs []InputID  `json:"inputs"`
		As     Resolution `json:"as"`
		// Message, for ResolvedSent, is the message that was sent in their place. It is recorded
		// in the same batch.
		Message InputID `json:"message,omitempty"`
		// Left is how many messages are still returned, so that lists need not read the whole conversation.
		Left  int `json:"left,omitempty"`
		Cause `json:"by,omitzero"`
	}

	// ResolveReturned says that returned messages need not be offered any more: the client
	// has taken them, or they are dropped. It is refused as a whole if one of them is no longer
	// returned, so that of two clients only one can take a message.
	ResolveReturned struct {
		Inputs []InputID  `json:"inputs"`
		As     Resolution `json:"as"` // ResolvedTaken or ResolvedDropped
	}
)

func (*ReturnedResolved) isBody() {}
func (ResolveReturned) isOp()     {}

// A Resolution says what became of a returned message.
type Resolution string

// What can become of a returned message. It is sent by a UserTurn that names it.
const (
	ResolvedSent    Resolution = "sent"
	ResolvedTaken   Resolution = "taken" // a client has it, such as an editor in which it is changed
	ResolvedDropped Resolution = "dropped"
)
