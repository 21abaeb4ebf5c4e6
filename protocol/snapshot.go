package protocol

// A Snapshot is the state of a conversation after event Last.
type Snapshot struct {
	ID       ConversationID `json:"id"`
	Settings Settings       `json:"settings"` // of the turns to come
	Title    string         `json:"title,omitempty"`
	Last     Seq            `json:"last"`
	Turn     TurnID         `json:"turn"`            // the current turn, or the last one
	Active   bool           `json:"active"`          // a turn has started and not ended
	Waiting  bool           `json:"waiting"`         // the turn only waits, for approvals or for a limit
	Hold     *Held          `json:"hold,omitempty"`  // the limit that it waits for
	Ended    EndReason      `json:"ended,omitempty"` // how the last turn ended
	Usage    Usage          `json:"usage"`           // of all turns

	ContextTokens int64 `json:"context_tokens,omitempty"` // of the latest request with its response; 0 if unknown

	PendingApprovals []CallID            `json:"pending_approvals,omitempty"`
	Inputs           []ReturnedInput     `json:"inputs,omitempty"`     // messages that wait
	Returned         []ReturnedInput     `json:"returned,omitempty"`   // messages that were not delivered, until a client sends, takes or drops them
	Background       []BackgroundStarted `json:"background,omitempty"` // commands that run
	Recovered        []string            `json:"recovered,omitempty"`  // what opening it found and did, for people
}
