package wire

import "encoding/json"

// What clients are sent. Each is the params of a notification or of a request of the server.
type (
	// ThreadStarted is thread/started.
	ThreadStarted struct {
		Thread Thread `json:"thread"`
	}

	// StatusChanged is thread/status/changed.
	StatusChanged struct {
		ThreadID string       `json:"threadId"`
		Status   ThreadStatus `json:"status"`
	}

	// ThreadRef is thread/closed, archived, unarchived, deleted and queue/changed.
	ThreadRef struct {
		ThreadID string `json:"threadId"`
	}

	// NameUpdated is thread/name/updated.
	NameUpdated struct {
		ThreadID   string  `json:"threadId"`
		ThreadName *string `json:"threadName"`
	}

	// SettingsUpdated is thread/settings/updated.
	SettingsUpdated struct {
		ThreadID string         `json:"threadId"`
		Settings ThreadSettings `json:"threadSettings"`
	}

	// UsageUpdated is thread/tokenUsage/updated.
	UsageUpdated struct {
		ThreadID   string           `json:"threadId"`
		TurnID     string           `json:"turnId"`
		TokenUsage ThreadTokenUsage `json:"tokenUsage"`
	}

	// TurnChanged is turn/started and turn/completed.
	TurnChanged struct {
		ThreadID string `json:"threadId"`
		Turn     Turn   `json:"turn"`
	}

	// DiffUpdated is turn/diff/updated.
	DiffUpdated struct {
		ThreadID string `json:"threadId"`
		TurnID   string `json:"turnId"`
		Diff     string `json:"diff"`
	}

	// PlanUpdated is turn/plan/updated.
	PlanUpdated struct {
		ThreadID    string     `json:"threadId"`
		TurnID      string     `json:"turnId"`
		Explanation *string    `json:"explanation"`
		Plan        []PlanStep `json:"plan"`
	}

	// A PlanStep is a step of a plan.
	PlanStep struct {
		Step   string `json:"step"`
		Status string `json:"status" enum:"pending,inProgress,completed"`
	}

	// ItemStarted is item/started.
	ItemStarted struct {
		ThreadID    string `json:"threadId"`
		TurnID      string `json:"turnId"`
		Item        Item   `json:"item"`
		StartedAtMs int64  `json:"startedAtMs"`
	}

	// ItemCompleted is item/completed.
	ItemCompleted struct {
		ThreadID      string `json:"threadId"`
		TurnID        string `json:"turnId"`
		Item          Item   `json:"item"`
		CompletedAtMs int64  `json:"completedAtMs"`
	}

	// Delta is item/agentMessage/delta and item/commandExecution/outputDelta.
	Delta struct {
		ThreadID string `json:"threadId"`
		TurnID   string `json:"turnId"`
		ItemID   string `json:"itemId"`
		Delta    string `json:"delta"`
	}

	// SummaryDelta is item/reasoning/summaryTextDelta.
	SummaryDelta struct {
		ThreadID     string `json:"threadId"`
		TurnID       string `json:"turnId"`
		ItemID       string `json:"itemId"`
		Delta        string `json:"delta"`
		SummaryIndex int    `json:"summaryIndex"`
	}

	// SummaryPart is item/reasoning/summaryPartAdded.
	SummaryPart struct {
		ThreadID     string `json:"threadId"`
		TurnID       string `json:"turnId"`
		ItemID       string `json:"itemId"`
		SummaryIndex int    `json:"summaryIndex"`
	}

	// RequestResolved is serverRequest/resolved.
	RequestResolved struct {
		ThreadID  string `json:"threadId"`
		RequestID string `json:"requestId"`
	}

	// Failure is error.
	Failure struct {
		ThreadID  string    `json:"threadId"`
		TurnID    string    `json:"turnId"`
		Error     TurnError `json:"error"`
		WillRetry bool      `json:"willRetry"`
	}

	// Warning is warning.
	Warning struct {
		ThreadID *string `json:"threadId"`
		Message  string  `json:"message"`
	}

	// ConfigWarning is configWarning.
	ConfigWarning struct {
		Summary string  `json:"summary"`
		Details *string `json:"details"`
	}

	// CommandApproval is item/commandExecution/requestApproval.
	CommandApproval struct {
		Kind               string          `json:"kind"`
		ThreadID           string          `json:"threadId"`
		TurnID             string          `json:"turnId"`
		ItemID             string          `json:"itemId"`
		StartedAtMs        int64           `json:"startedAtMs"`
		Reason             *string         `json:"reason"`
		Command            *string         `json:"command"`
		Cwd                *string         `json:"cwd"`
		CommandActions     []CommandAction `json:"commandActions"`
		AvailableDecisions []any           `json:"availableDecisions" doc:"strings, and acceptWithExecpolicyAmendment as an object"`

		// ProposedAmendment is how the commands begin that run unasked from now on if the client decides acceptWithExecpolicyAmendment.
		ProposedAmendment []string `json:"proposedExecpolicyAmendment,omitempty"`
	}

	// An Amendment comes with the decision acceptWithExecpolicyAmendment: how the commands begin that run unasked from now on.
	Amendment struct {
		Prefix []string `json:"execpolicy_amendment"`
	}

	// FileApproval is item/fileChange/requestApproval.
	FileApproval struct {
		ThreadID    string  `json:"threadId"`
		TurnID      string  `json:"turnId"`
		ItemID      string  `json:"itemId"`
		StartedAtMs int64   `json:"startedAtMs"`
		Reason      *string `json:"reason"`
		GrantRoot   *string `json:"grantRoot"`
	}

	// Elicitation is mcpServer/elicitation/request.
	Elicitation struct {
		ThreadID        string          `json:"threadId"`
		TurnID          *string         `json:"turnId"`
		ServerName      string          `json:"serverName"`
		Mode            string          `json:"mode"`
		Message         string          `json:"message"`
		RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
		URL             string          `json:"url,omitempty"`
		ElicitationID   string          `json:"elicitationId,omitempty"`
		Meta            json.RawMessage `json:"_meta"`
	}

	// A Decision answers an approval; an Action answers an elicitation.
	Decision struct {
		Decision json.RawMessage `json:"decision,omitempty"` // a string, or an object with one member
		Action   string          `json:"action,omitempty"`
		Content  json.RawMessage `json:"content,omitempty"`
	}
)
