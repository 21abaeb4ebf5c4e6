// Package wire holds the messages of the app-server as Go types, with the names and shapes that the
// clients of Codex's app-server know. It has no behaviour. A member that is a pointer without omitempty is
// always there, null when it is unknown.
//
// thread.go and item.go are what is talked about, request.go what clients ask, notify.go what they are sent.
package wire

// A Thread is a conversation.
type Thread struct {
	ID              string       `json:"id"`
	SessionID       string       `json:"sessionId"`
	ForkedFromID    *string      `json:"forkedFromId"`
	ParentThreadID  *string      `json:"parentThreadId"`
	Preview         string       `json:"preview"`
	Ephemeral       bool         `json:"ephemeral"`
	HistoryMode     string       `json:"historyMode"`
	ModelProvider   string       `json:"modelProvider"`
	Model           *string      `json:"model"`
	ReasoningEffort *string      `json:"reasoningEffort"`
	CreatedAt       int64        `json:"createdAt"` // seconds
	UpdatedAt       int64        `json:"updatedAt"`
	RecencyAt       *int64       `json:"recencyAt"`
	Status          ThreadStatus `json:"status"`
	Path            *string      `json:"path"`
	Cwd             string       `json:"cwd"`
	CLIVersion      string       `json:"cliVersion"`
	Originator      *string      `json:"originator"`
	Source          string       `json:"source"`
	ThreadSource    *string      `json:"threadSource"`
	AgentNickname   *string      `json:"agentNickname"`
	AgentRole       *string      `json:"agentRole"`
	GitInfo         *GitInfo     `json:"gitInfo"`
	Name            *string      `json:"name"`
	ProjectID       *string      `json:"projectId"`
	Section         *string      `json:"section"`
	CanAcceptInput  *bool        `json:"canAcceptDirectInput"`
	Turns           []Turn       `json:"turns"`

	// ReturnedInput are messages that were accepted and not delivered, until a client sends, takes or drops them. In lists
	// of threads it is left out.
	ReturnedInput []ReturnedInput `json:"returnedInput,omitempty"`
}

// GitInfo is what is known of a thread's repository.
type GitInfo struct {
	Branch *string `json:"branch"`
	SHA    *string `json:"sha"`
	Origin *string `json:"originUrl"`
}

// A ThreadStatus says what a thread is doing.
type ThreadStatus struct {
	Type        string       `json:"type" enum:"notLoaded,idle,systemError,active"`
	ActiveFlags *ActiveFlags `json:"activeFlags,omitempty"` // of one that is active
}

// ActiveFlags say what an active thread waits for.
type ActiveFlags []string

// Statuses of a thread.
var (
	NotLoaded   = ThreadStatus{Type: "notLoaded"}
	Idle        = ThreadStatus{Type: "idle"}
	SystemError = ThreadStatus{Type: "systemError"}
)

// Active is the status of a thread with a turn.
func Active(flags ...string) ThreadStatus {
	list := ActiveFlags(append([]string{}, flags...))
	return ThreadStatus{Type: "active", ActiveFlags: &list}
}

// A Turn is a turn, with its items or without.
type Turn struct {
	ID          string     `json:"id"`
	RootTurnID  *string    `json:"rootTurnId"`
	Items       []Item     `json:"items"`
	ItemsView   string     `json:"itemsView" enum:"notLoaded,summary,full"`
	Status      string     `json:"status" enum:"inProgress,completed,interrupted,failed"`
	Error       *TurnError `json:"error"`
	StartedAt   *int64     `json:"startedAt"` // seconds
	CompletedAt *int64     `json:"completedAt"`
	DurationMs  *int64     `json:"durationMs"`

	// AbortReason says why an interrupted turn ended.
	AbortReason string `json:"abortReason,omitempty" enum:"interrupted,replaced,crashed"`
	// ReturnedInput are messages that were accepted and not delivered.
	ReturnedInput []ReturnedInput `json:"returnedInput,omitempty"`
}

// A ReturnedInput is a message that was accepted and not delivered.
type ReturnedInput struct {
	ID       int         `json:"id"` // for the returnedInput of turn/start
	ClientID *string     `json:"clientUserMessageId"`
	Input    []UserInput `json:"input"`
}

// A TurnError is why a turn failed, or why a request is made again.
type TurnError struct {
	Message           string  `json:"message"`
	CodexErrorInfo    any     `json:"codexErrorInfo"` // a string or an object with one member
	AdditionalDetails *string `json:"additionalDetails"`
}

// SandboxPolicy is what commands may touch.
type SandboxPolicy struct {
	Type                string    `json:"type" enum:"dangerFullAccess,readOnly,workspaceWrite,externalSandbox"`
	WritableRoots       *[]string `json:"writableRoots,omitempty"`
	NetworkAccess       any       `json:"networkAccess,omitempty"` // a boolean; of externalSandbox a string
	ExcludeTmpdirEnvVar *bool     `json:"excludeTmpdirEnvVar,omitempty"`
	ExcludeSlashTmp     *bool     `json:"excludeSlashTmp,omitempty"`
}

// A QueuedSubmission is a message that waits in the queue of a thread.
type QueuedSubmission struct {
	ID       string      `json:"id"`
	ClientID string      `json:"clientUserMessageId"`
	Input    []UserInput `json:"input"`
}

// TokenUsage counts tokens.
type TokenUsage struct {
	TotalTokens           int64 `json:"totalTokens"`
	InputTokens           int64 `json:"inputTokens"`
	CachedInputTokens     int64 `json:"cachedInputTokens"`
	CacheWriteInputTokens int64 `json:"cacheWriteInputTokens"`
	OutputTokens          int64 `json:"outputTokens"`
	ReasoningOutputTokens int64 `json:"reasoningOutputTokens"`
}

// ThreadTokenUsage counts the tokens of a thread.
type ThreadTokenUsage struct {
	Total              TokenUsage `json:"total"`
	Last               TokenUsage `json:"last"`
	ModelContextWindow *int64     `json:"modelContextWindow"`
}
