package protocol

import "time"

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

// A TurnSummary is what a program is notified of when a turn has ended, or begins to wait.
type TurnSummary struct {
	Conversation ConversationID // the turn's
	Turn         TurnID         // its number
	Cwd          string         // the directory that it worked in
	Reason       EndReason      // how it ended; empty while it waits
	Error        *Error         // why it failed
	Inputs       []string       // the user's messages
	Last         string         // the model's last message, which may be partial; empty if there is none
	OnlyShell    bool           // the user ran a command, and nothing else happened
	Began        time.Time      // when it was started
	Took         time.Duration  // from its start to its end, as they were recorded
}

// A Summary is what a list shows of a conversation.
type Summary struct {
	ID        ConversationID `json:"id"`                   // of the conversation
	Title     string         `json:"title"`                // Name, else FirstLine
	Name      string         `json:"name,omitempty"`       // the title that a user gave it
	Cwd       string         `json:"cwd"`                  // the directory that it was begun in
	Model     string         `json:"model,omitempty"`      // as its settings name it
	Created   time.Time      `json:"created"`              // when it was begun
	Updated   time.Time      `json:"updated"`              // when it last changed
	Turns     TurnID         `json:"turns"`                // how many it has
	Ended     EndReason      `json:"ended,omitempty"`      // how the last turn ended; empty if it has not
	LastLine  string         `json:"last_line,omitempty"`  // of the last message
	FirstLine string         `json:"first_line,omitempty"` // of the first message
	Archived  bool           `json:"archived,omitempty"`   // it is archived
	Provider  string         `json:"provider,omitempty"`   // of the model
	Usage     *Usage         `json:"usage,omitempty"`      // up to the end of the last turn; nil if it is not known
	Path      string         `json:"path,omitempty"`       // of its file; empty if it has none

	// Unreadable says why nothing but the id and the times is known. The title says it, too.
	Unreadable string `json:"unreadable,omitempty"`

	// Returned is how many messages were not delivered and wait to be sent, taken or dropped.
	Returned int `json:"returned,omitempty"`
}
