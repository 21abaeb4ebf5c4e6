package wire

import "encoding/json"

// RequestPermission asks the user whether a call may run.
type RequestPermission struct {
	SessionID string             `json:"sessionId"`
	ToolCall  ToolCall           `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
}

// A PermissionOption is an answer that the user can choose.
type PermissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// The kinds of answer.
const (
	AllowOnce   = "allow_once"
	AllowAlways = "allow_always"
	RejectOnce  = "reject_once"
)

// Permission is the answer.
type Permission struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

// Elicit asks the user something: with a form, or on a page.
type Elicit struct {
	SessionID     string          `json:"sessionId"`
	ToolCallID    string          `json:"toolCallId,omitempty"`
	Mode          string          `json:"mode"`
	Message       string          `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema,omitempty"`
	ElicitationID string          `json:"elicitationId,omitempty"`
	URL           string          `json:"url,omitempty"`
}

// Elicited is the answer.
type Elicited struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// ReadFile asks for a file as the editor has it.
type ReadFile struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
}

// FileContent is the answer.
type FileContent struct {
	Content string `json:"content"`
}

// WriteFile asks the editor to change a file.
type WriteFile struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Content   string `json:"content"`
}
