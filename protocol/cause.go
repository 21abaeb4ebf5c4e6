package protocol

// A Cause says which client asked for what an event records. It is empty for what happens by
// itself, and for what the only user of the process asked that has the conversation open.
type Cause struct {
	Client string `json:"client,omitempty"` // its name, for people
	Op     string `json:"op,omitempty"`     // the client's name of the op, if it gave it one
}

// Caused is implemented by the events that an op of a client can cause.
type Caused interface {
	Body
	CausedBy() Cause
	SetCause(Cause)
}

// CausedBy returns the cause.
func (c *Cause) CausedBy() Cause { return *c }

// SetCause sets the cause. It is for whoever makes the event.
func (c *Cause) SetCause(by Cause) { *c = by }
