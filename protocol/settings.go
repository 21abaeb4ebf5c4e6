package protocol

import "encoding/json"

// Settings say how the turns of a conversation are run. They are recorded when
// a conversation starts and again whenever they change.
type Settings struct {
	Cwd              string          `json:"cwd"`
	Provider         string          `json:"provider,omitempty"` // which model provider, by its configured name
	Model            string          `json:"model,omitempty"`
	Effort           string          `json:"effort,omitempty"`
	Summary          string          `json:"summary,omitempty"`
	Verbosity        string          `json:"verbosity,omitempty"`
	ContextWindow    int64           `json:"context_window,omitempty"`    // tokens; 0 is unknown
	Approval         ApprovalPolicy  `json:"approval,omitempty"`          // when to ask a person
	Sandbox          SandboxPolicy   `json:"sandbox,omitzero"`            // what commands may touch
	Plan             bool            `json:"plan,omitempty"`              // plan mode: see ForTurn
	Instructions     string          `json:"instructions,omitempty"`      // replaces the built-in instructions
	Developer        string          `json:"developer,omitempty"`         // is added to them
	Environment      Environment     `json:"environment,omitzero"`        // the machine, described for the model
	UserInstructions string          `json:"user_instructions,omitempty"` // AGENTS.md and the like
	OutputSchema     json.RawMessage `json:"output_schema,omitempty"`     // wanted form of the last message
	OnLimit          OnLimit         `json:"on_limit,omitempty"`          // what to do when a limit of the service is reached
	Ephemeral        bool            `json:"ephemeral,omitempty"`         // kept in memory only
}

// ForTurn returns the settings that a turn of the model is run with. In plan mode it
// changes nothing, whatever the sandbox is when the plan has been accepted.
func (s Settings) ForTurn() Settings {
	if s.Plan {
		s.Sandbox = SandboxPolicy{Mode: SandboxReadOnly}
	}
	return s
}

// An Environment describes the machine that a model works on, in words.
type Environment struct {
	Shell    string `json:"shell,omitempty"`
	OS       string `json:"os,omitempty"`
	Date     string `json:"date,omitempty"` // 2006-01-02
	TimeZone string `json:"time_zone,omitempty"`
	Git      string `json:"git,omitempty"` // of the working directory, when it was last looked at
}

// OnLimit says what becomes of a turn when a limit of the service is reached. The
// zero value is OnLimitFail.
type OnLimit string

// What can become of a turn at a limit.
const (
	OnLimitHold   OnLimit = "hold"   // it waits until a client acts
	OnLimitResume OnLimit = "resume" // it waits until the limit is lifted
	OnLimitFail   OnLimit = "fail"
)

// An ApprovalPolicy says when a person is asked before a call runs.
type ApprovalPolicy string

// The approval policies.
const (
	ApprovalUntrusted ApprovalPolicy = "untrusted"
	ApprovalOnFailure ApprovalPolicy = "on-failure"
	ApprovalOnRequest ApprovalPolicy = "on-request"
	ApprovalNever     ApprovalPolicy = "never"
)

// A SandboxMode says how far a command is confined.
type SandboxMode string

// The sandbox modes.
const (
	SandboxReadOnly       SandboxMode = "read-only"
	SandboxWorkspaceWrite SandboxMode = "workspace-write"
	SandboxFullAccess     SandboxMode = "danger-full-access"
)

// A SandboxPolicy is a mode with its details, in the form clients send it.
type SandboxPolicy struct {
	Mode                SandboxMode `json:"mode"`
	WritableRoots       []string    `json:"writable_roots,omitempty"`
	NetworkAccess       bool        `json:"network_access,omitempty"`
	ExcludeTmpdirEnvVar bool        `json:"exclude_tmpdir_env_var,omitempty"`
	ExcludeSlashTmp     bool        `json:"exclude_slash_tmp,omitempty"`
}

// Overrides change some settings; nil fields are left as they are.
type Overrides struct {
	Cwd          *string         `json:"cwd,omitempty"`
	Provider     *string         `json:"provider,omitempty"`
	Model        *string         `json:"model,omitempty"`
	Effort       *string         `json:"effort,omitempty"`
	Summary      *string         `json:"summary,omitempty"`
	Approval     *ApprovalPolicy `json:"approval,omitempty"`
	Sandbox      *SandboxPolicy  `json:"sandbox,omitempty"`
	Plan         *bool           `json:"plan,omitempty"`
	Environment  *Environment    `json:"environment,omitempty"`
	OnLimit      *OnLimit        `json:"on_limit,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// Apply returns s with the changes of o.
func (o Overrides) Apply(s Settings) Settings {
	set(&s.Cwd, o.Cwd)
	set(&s.Provider, o.Provider)
	set(&s.Model, o.Model)
	set(&s.Effort, o.Effort)
	set(&s.Summary, o.Summary)
	set(&s.Approval, o.Approval)
	set(&s.Sandbox, o.Sandbox)
	set(&s.Plan, o.Plan)
	set(&s.Environment, o.Environment)
	set(&s.OnLimit, o.OnLimit)
	if o.OutputSchema != nil {
		s.OutputSchema = o.OutputSchema
	}
	return s
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}
