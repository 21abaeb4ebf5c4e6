package wire

import "encoding/json"

// ThreadSettingsUpdate is thread/settings/update.
type ThreadSettingsUpdate struct {
	Overrides
	NoEffect
	ThreadID string `json:"threadId"`
}

// ThreadSettings are what the next turn is run with.
type ThreadSettings struct {
	ApprovalPolicy    string            `json:"approvalPolicy"`
	ApprovalsReviewer string            `json:"approvalsReviewer"`
	CollaborationMode CollaborationMode `json:"collaborationMode"`
	Cwd               string            `json:"cwd"`
	Model             string            `json:"model"`
	ModelProvider     string            `json:"modelProvider"`
	SandboxPolicy     SandboxPolicy     `json:"sandboxPolicy"`
	Effort            *string           `json:"effort"`
	Summary           *string           `json:"summary"`
}

// A CollaborationMode says whether turns change something, or only make a plan.
type CollaborationMode struct {
	Mode     string       `json:"mode" enum:"plan,default"`
	Settings ModeSettings `json:"settings"`
}

// ModeSettings are those of a collaboration mode.
type ModeSettings struct {
	Model     string          `json:"model"`
	Effort    *string         `json:"reasoning_effort"`
	Developer json.RawMessage `json:"developer_instructions,omitempty" doc:"makes no difference"`
}

// A ModeChoice is a collaboration mode that can be chosen.
type ModeChoice struct {
	Name   string  `json:"name"`
	Mode   string  `json:"mode"`
	Model  *string `json:"model"`
	Effort *string `json:"reasoning_effort"`
}

// Modes answers collaborationMode/list.
type Modes struct {
	Data []ModeChoice `json:"data"`
}

// QueueAdd is thread/queue/add.
type QueueAdd struct {
	ThreadID string      `json:"threadId"`
	Input    []UserInput `json:"input"`
	ClientID string      `json:"clientUserMessageId"`
}

// QueueUpdate is thread/queue/update.
type QueueUpdate struct {
	ThreadID string      `json:"threadId"`
	ID       string      `json:"queuedSubmissionId"`
	Input    []UserInput `json:"input"`
}

// QueueDelete is thread/queue/delete.
type QueueDelete struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"queuedSubmissionId"`
}

// QueueReorder is thread/queue/reorder.
type QueueReorder struct {
	ThreadID string   `json:"threadId"`
	IDs      []string `json:"queuedSubmissionIds"`
}

// QueueStart is thread/queue/start.
type QueueStart struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"queuedSubmissionId,omitempty"`
}

// QueueList is thread/queue/list.
type QueueList struct {
	ThreadID string `json:"threadId"`
	Cursor   string `json:"cursor,omitempty"`
	Limit    int    `json:"limit,omitempty"`
}

// Queued answers thread/queue/list.
type Queued struct {
	Data       []QueuedSubmission `json:"data"`
	NextCursor *string            `json:"nextCursor"`
	Paused     bool               `json:"paused"` // thread/queue/start sends the next
}

// QueuedOne answers thread/queue/add and update.
type QueuedOne struct {
	QueuedSubmission QueuedSubmission `json:"queuedSubmission"`
}

// Deleted answers thread/queue/delete.
type Deleted struct {
	Deleted bool `json:"deleted"`
}

// A Terminal is a background command.
type Terminal struct {
	ItemID     string   `json:"itemId"`
	ProcessID  string   `json:"processId"`
	Command    string   `json:"command"`
	Cwd        string   `json:"cwd"`
	OSPid      *int     `json:"osPid"`
	CPUPercent *float64 `json:"cpuPercent"`
	RSSKb      *int64   `json:"rssKb"`
}

// Terminals answers thread/backgroundTerminals/list.
type Terminals struct {
	Data       []Terminal `json:"data"`
	NextCursor *string    `json:"nextCursor"`
}

// TerminalEnd is thread/backgroundTerminals/terminate.
type TerminalEnd struct {
	ThreadID  string `json:"threadId"`
	ProcessID string `json:"processId"`
}

// Terminated answers it.
type Terminated struct {
	Terminated bool `json:"terminated"`
}

// CommandExec is command/exec.
type CommandExec struct {
	Command        []string           `json:"command"`
	Cwd            string             `json:"cwd,omitempty"`
	Env            map[string]*string `json:"env,omitempty" doc:"changes of the environment; null unsets a variable"`
	TimeoutMs      int64              `json:"timeoutMs,omitempty"`
	SandboxPolicy  *SandboxPolicy     `json:"sandboxPolicy,omitempty"`
	Permissions    json.RawMessage    `json:"permissionProfile,omitempty" doc:"refused: set sandboxPolicy"`
	DisableTimeout bool               `json:"disableTimeout,omitempty" doc:"refused: set timeoutMs"`
	TTY            bool               `json:"tty,omitempty" doc:"refused"`
	StreamStdin    bool               `json:"streamStdin,omitempty" doc:"refused"`
	StreamOutput   bool               `json:"streamStdoutStderr,omitempty" doc:"refused"`
}

// CommandDone answers it.
type CommandDone struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// A Model is a model that can be chosen.
type Model struct {
	ID            string         `json:"id"`
	Model         string         `json:"model"`
	DisplayName   string         `json:"displayName"`
	Description   string         `json:"description"`
	Hidden        bool           `json:"hidden"`
	Efforts       []EffortOption `json:"supportedReasoningEfforts"`
	DefaultEffort string         `json:"defaultReasoningEffort"`
	Modalities    []string       `json:"inputModalities"`
	IsDefault     bool           `json:"isDefault"`
}

// An EffortOption is how much a model can think.
type EffortOption struct {
	Effort      string `json:"reasoningEffort"`
	Description string `json:"description"`
}

// ModelList is model/list.
type ModelList struct {
	Cursor        string `json:"cursor,omitempty"`
	Limit         int    `json:"limit,omitempty"`
	IncludeHidden bool   `json:"includeHidden,omitempty"`
}

// Models answers it.
type Models struct {
	Data       []Model `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// AccountRead is account/read.
type AccountRead struct {
	RefreshToken bool `json:"refreshToken,omitempty" doc:"makes no difference"`
}

// Account answers it.
type Account struct {
	Account            *AccountKind `json:"account"`
	RequiresOpenAIAuth bool         `json:"requiresOpenaiAuth"`
}

// An AccountKind is how the model service knows us.
type AccountKind struct {
	Type string `json:"type" enum:"apiKey"`
}

// Empty is a list of nothing: of hooks.
type Empty struct {
	Data []None `json:"data"`
}

// Anything is params that are not looked at.
type Anything map[string]any

// Goal answers thread/goal/get.
type Goal struct {
	Goal json.RawMessage `json:"goal"`
}

// SkillsList is skills/list.
type SkillsList struct {
	Cwds        []string `json:"cwds,omitempty"`
	ForceReload bool     `json:"forceReload,omitempty" doc:"makes no difference"`
}

// Skills answers it.
type Skills struct {
	Data []SkillsEntry `json:"data"`
}

// A SkillsEntry lists the skills of a directory.
type SkillsEntry struct {
	Cwd    string  `json:"cwd"`
	Skills []Skill `json:"skills"`
	Errors []None  `json:"errors"`
}

// A Skill is a skill.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
	Scope       string `json:"scope"`
	Enabled     bool   `json:"enabled"`
}

// Profiles answers permissionProfile/list.
type Profiles struct {
	Data       []Profile `json:"data"`
	NextCursor *string   `json:"nextCursor"`
}

// A Profile is a set of permissions that can be chosen.
type Profile struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Allowed     bool   `json:"allowed"`
}

// Paging is params of a list that has all of it on one page.
type Paging struct {
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}
