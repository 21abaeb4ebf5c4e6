package wire

import "encoding/json"

// Notification is what a session/update carries.
type Notification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// A Chunk is a piece of a message or of a thought.
type Chunk struct {
	Update    string         `json:"sessionUpdate"`
	Content   Block          `json:"content"`
	MessageID string         `json:"messageId,omitempty"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// The kinds of chunk.
const (
	UserChunk    = "user_message_chunk"
	AgentChunk   = "agent_message_chunk"
	ThoughtChunk = "agent_thought_chunk"
)

// A ToolCall is a call, or what has changed about one. Lists replace those before.
type ToolCall struct {
	Update    string          `json:"sessionUpdate,omitempty"` // empty in a request for permission
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title,omitempty"`
	Name      string          `json:"name,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	Content   *[]CallContent  `json:"content,omitempty"`
	Locations *[]Location     `json:"locations,omitempty"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	RawOutput json.RawMessage `json:"rawOutput,omitempty"`
	Meta      map[string]any  `json:"_meta,omitempty"`
}

// The kinds of update about calls.
const (
	NewCall     = "tool_call"
	CallChanged = "tool_call_update"
)

// The statuses of a call.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	Failed     = "failed"
)

// A CallContent is something that a call shows: a block, the change of a file, or a terminal.
type CallContent struct {
	Type       string  `json:"type"`
	Content    *Block  `json:"content,omitempty"`
	Path       string  `json:"path,omitempty"`
	OldText    *string `json:"oldText,omitempty"`
	NewText    *string `json:"newText,omitempty"`
	TerminalID string  `json:"terminalId,omitempty"`
}

// A Location is a place in a file.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// A Plan is the list of steps.
type Plan struct {
	Update  string      `json:"sessionUpdate"`
	Entries []PlanEntry `json:"entries"`
}

// A PlanEntry is a step.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Commands are what can be typed after a slash.
type Commands struct {
	Update   string    `json:"sessionUpdate"`
	Commands []Command `json:"availableCommands"`
}

// A Command is one of them.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Input       *Hint  `json:"input,omitempty"`
}

// A Hint says what may follow the name of a command.
type Hint struct {
	Hint string `json:"hint"`
}

// ModeChanged says which mode is chosen now.
type ModeChanged struct {
	Update  string `json:"sessionUpdate"`
	Current string `json:"currentModeId"`
}

// OptionsChanged says what is chosen now.
type OptionsChanged struct {
	Update  string   `json:"sessionUpdate"`
	Options []Option `json:"configOptions"`
}

// InfoChanged says what a session is called now.
type InfoChanged struct {
	Update    string `json:"sessionUpdate"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// Usage says how full the context is, and what the session has cost.
type Usage struct {
	Update string `json:"sessionUpdate"`
	Used   int64  `json:"used"`
	Size   int64  `json:"size"`
	Cost   *Cost  `json:"cost,omitempty"`
}

// A Cost is an amount of money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// A Notice is a remark that is not part of the conversation.
type Notice struct {
	Update   string `json:"sessionUpdate"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
}

// A Compaction says how far a compaction is.
type Compaction struct {
	Update string `json:"sessionUpdate"`
	ID     string `json:"compactionId"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}
