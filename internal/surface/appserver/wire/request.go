package wire

import "encoding/json"

// None is params or a result without members.
type None struct{}

// Initialize is initialize.
type Initialize struct {
	ClientInfo   ClientInfo    `json:"clientInfo"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// ClientInfo is what a client says of itself.
type ClientInfo struct {
	Name    string  `json:"name"`
	Title   *string `json:"title,omitempty"`
	Version string  `json:"version"`
}

// Capabilities are what a client can do.
type Capabilities struct {
	ExperimentalAPI    bool            `json:"experimentalApi,omitempty"`
	RequestAttestation bool            `json:"requestAttestation,omitempty"`
	OptOut             []string        `json:"optOutNotificationMethods,omitempty" doc:"notifications that are not wanted, by their exact names"`
	Extensions         json.RawMessage `json:"extensions,omitempty"`
}

// Initialized answers initialize.
type Initialized struct {
	UserAgent      string `json:"userAgent"`
	CodexHome      string `json:"codexHome"`
	PlatformFamily string `json:"platformFamily"`
	PlatformOS     string `json:"platformOs"`
}

// Overrides are the settings that a request can name. They stay in force for later turns.
type Overrides struct {
	Model          string          `json:"model,omitempty"`
	ModelProvider  string          `json:"modelProvider,omitempty"`
	Cwd            string          `json:"cwd,omitempty"`
	ApprovalPolicy json.RawMessage `json:"approvalPolicy,omitempty" doc:"untrusted, on-request or never"`
	Sandbox        string          `json:"sandbox,omitempty" enum:"read-only,workspace-write,danger-full-access"`
	SandboxPolicy  *SandboxPolicy  `json:"sandboxPolicy,omitempty"`
	Permissions    string          `json:"permissions,omitempty" doc:":read-only, :workspace or :danger-full-access"`
	Effort         string          `json:"effort,omitempty"`
	Summary        string          `json:"summary,omitempty"`
	Config         map[string]any  `json:"config,omitempty"`
	BaseInstr      string          `json:"baseInstructions,omitempty"`
	DeveloperInstr string          `json:"developerInstructions,omitempty"`

	Mode *CollaborationMode `json:"collaborationMode,omitempty" doc:"plan or default; its model and effort count more than the others"`
}

// NoEffect are members that clients of Codex send and that change nothing here.
type NoEffect struct {
	ApprovalsReviewer     json.RawMessage `json:"approvalsReviewer,omitempty"`
	DynamicTools          json.RawMessage `json:"dynamicTools,omitempty"`
	Environments          json.RawMessage `json:"environments,omitempty"`
	HistoryMode           json.RawMessage `json:"historyMode,omitempty"`
	MultiAgentMode        json.RawMessage `json:"multiAgentMode,omitempty"`
	Personality           json.RawMessage `json:"personality,omitempty"`
	RuntimeWorkspaceRoots json.RawMessage `json:"runtimeWorkspaceRoots,omitempty"`
	ServiceTier           json.RawMessage `json:"serviceTier,omitempty"`
	ServiceTierForTurn    json.RawMessage `json:"serviceTierForTurn,omitempty"`
	ServiceName           json.RawMessage `json:"serviceName,omitempty"`
	SessionStartSource    json.RawMessage `json:"sessionStartSource,omitempty"`
	ProjectID             json.RawMessage `json:"projectId,omitempty"`
	DaybreakEnabled       json.RawMessage `json:"daybreakEnabled,omitempty"`
	DisabledPluginIDs     json.RawMessage `json:"disabledPluginIds,omitempty"`
	ExperimentalRawEvents json.RawMessage `json:"experimentalRawEvents,omitempty"`
	ModelFallback         json.RawMessage `json:"allowProviderModelFallback,omitempty"`
	CapabilityRoots       json.RawMessage `json:"selectedCapabilityRoots,omitempty"`
	Metadata              json.RawMessage `json:"responsesapiClientMetadata,omitempty"`
	MetadataPatch         json.RawMessage `json:"responsesapiClientMetadataPatch,omitempty"`
	TurnTrigger           json.RawMessage `json:"turnTrigger,omitempty"`
	RootTurnID            json.RawMessage `json:"rootTurnId,omitempty"`
	ParentTurnID          json.RawMessage `json:"parentTurnId,omitempty"`
	CyberAccessProgram    json.RawMessage `json:"cyberAccessProgram,omitempty"`
	DeferGoal             json.RawMessage `json:"deferGoalContinuation,omitempty"`
	AttachToSource        json.RawMessage `json:"attachToSource,omitempty"`
	PredictionMode        json.RawMessage `json:"experimentalPredictionMode,omitempty"`
	PredictionMCP         json.RawMessage `json:"experimentalDisablePredictionMcp,omitempty"`
	InitialTurnsPage      json.RawMessage `json:"initialTurnsPage,omitempty"`
}

// ThreadStart is thread/start.
type ThreadStart struct {
	Overrides
	NoEffect
	Ephemeral    bool   `json:"ephemeral,omitempty"`
	ThreadSource string `json:"threadSource,omitempty"`
}

// ThreadResume is thread/resume.
type ThreadResume struct {
	Overrides
	NoEffect
	ThreadID     string `json:"threadId"`
	ExcludeTurns bool   `json:"excludeTurns,omitempty" doc:"makes no difference: clients that send it want them all the same"`
}

// ThreadFork is thread/fork.
type ThreadFork struct {
	Overrides
	NoEffect
	ThreadID     string `json:"threadId"`
	LastTurnID   string `json:"lastTurnId,omitempty" doc:"the last turn that is copied"`
	BeforeTurnID string `json:"beforeTurnId,omitempty" doc:"the first turn that is not copied"`
	Ephemeral    bool   `json:"ephemeral,omitempty" doc:"refused: a copy is kept"`
	ExcludeTurns bool   `json:"excludeTurns,omitempty"`
	ThreadSource string `json:"threadSource,omitempty"`
}

// ThreadOpened answers thread/start, resume and fork.
type ThreadOpened struct {
	Thread                Thread        `json:"thread"`
	Model                 string        `json:"model"`
	ModelProvider         string        `json:"modelProvider"`
	ServiceTier           *string       `json:"serviceTier"`
	Cwd                   string        `json:"cwd"`
	RuntimeWorkspaceRoots []string      `json:"runtimeWorkspaceRoots"`
	InstructionSources    []string      `json:"instructionSources"`
	ApprovalPolicy        string        `json:"approvalPolicy"`
	ApprovalsReviewer     string        `json:"approvalsReviewer"`
	Sandbox               SandboxPolicy `json:"sandbox"`
	ReasoningEffort       *string       `json:"reasoningEffort"`
	TurnsCursor           *string       `json:"turnsBackwardsCursor"`
	ItemsCursor           *string       `json:"itemsBackwardsCursor"`
	Seq                   uint64        `json:"seq"` // the last event that the answer knows of
}

// ThreadName names a thread: params of many requests.
type ThreadName struct {
	ThreadID string `json:"threadId"`
}

// ThreadAnswer is a thread: the result of several requests.
type ThreadAnswer struct {
	Thread Thread `json:"thread"`
}

// ThreadRead is thread/read.
type ThreadRead struct {
	ThreadID     string `json:"threadId"`
	IncludeTurns bool   `json:"includeTurns,omitempty"`
}

// ThreadList is thread/list, and thread/search with its searchTerm.
type ThreadList struct {
	Cursor         string          `json:"cursor,omitempty"`
	Limit          int             `json:"limit,omitempty"`
	SortKey        string          `json:"sortKey,omitempty" doc:"created_at, updated_at or recency_at"`
	SortDirection  string          `json:"sortDirection,omitempty" enum:"asc,desc"`
	SourceKinds    []string        `json:"sourceKinds,omitempty"`
	ModelProviders []string        `json:"modelProviders,omitempty"`
	Archived       bool            `json:"archived,omitempty"`
	Cwd            json.RawMessage `json:"cwd,omitempty" doc:"a directory, or a list of them"`
	SearchTerm     string          `json:"searchTerm,omitempty"`
	SectionID      string          `json:"sectionId,omitempty" doc:"there are no sections: nothing is in one"`
	ParentThreadID string          `json:"parentThreadId,omitempty" doc:"no thread has a parent"`
	AncestorID     string          `json:"ancestorThreadId,omitempty" doc:"no thread has an ancestor"`
	UseStateDBOnly bool            `json:"useStateDbOnly,omitempty" doc:"makes no difference"`
	Excluded       []string        `json:"excludedThreadIds,omitempty"`
}

// Threads answers thread/list.
type Threads struct {
	Data            []Thread `json:"data"`
	NextCursor      *string  `json:"nextCursor"`
	BackwardsCursor *string  `json:"backwardsCursor"`
}

// IDs answers thread/loaded/list.
type IDs struct {
	Data       []string `json:"data"`
	NextCursor *string  `json:"nextCursor"`
}

// TurnsList is thread/turns/list.
type TurnsList struct {
	ThreadID      string `json:"threadId"`
	Cursor        string `json:"cursor,omitempty"`
	Limit         int    `json:"limit,omitempty"`
	SortDirection string `json:"sortDirection,omitempty" enum:"asc,desc" doc:"default desc"`
	ItemsView     string `json:"itemsView,omitempty" enum:"notLoaded,summary,full" doc:"default summary"`
}

// Turns answers thread/turns/list.
type Turns struct {
	Data            []Turn  `json:"data"`
	NextCursor      *string `json:"nextCursor"`
	BackwardsCursor *string `json:"backwardsCursor"`
}

// ItemsList is thread/items/list.
type ItemsList struct {
	ThreadID      string          `json:"threadId"`
	TurnID        string          `json:"turnId,omitempty"`
	Cursor        json.RawMessage `json:"cursor,omitempty"`
	Limit         int             `json:"limit,omitempty"`
	SortDirection string          `json:"sortDirection,omitempty" enum:"asc,desc" doc:"default desc"`
}

// Items answers thread/items/list.
type Items struct {
	Data            []ItemEntry `json:"data"`
	NextCursor      *string     `json:"nextCursor"`
	BackwardsCursor *string     `json:"backwardsCursor"`
}

// An ItemEntry is an item and its turn.
type ItemEntry struct {
	TurnID        string `json:"turnId"`
	Item          Item   `json:"item"`
	StartedAtMs   *int64 `json:"startedAtMs"`
	CompletedAtMs *int64 `json:"completedAtMs"`
}

// Unsubscribed answers thread/unsubscribe.
type Unsubscribed struct {
	Status string `json:"status" enum:"unsubscribed,notSubscribed,notLoaded"`
}

// NameSet is thread/name/set.
type NameSet struct {
	ThreadID string `json:"threadId"`
	Name     string `json:"name"`
}

// ThreadRevert is thread/revert.
type ThreadRevert struct {
	ThreadID     string `json:"threadId"`
	BeforeTurnID string `json:"beforeTurnId"`
}

// Reverted answers thread/revert.
type Reverted struct {
	Thread      Thread  `json:"thread"`
	TurnsCursor *string `json:"turnsBackwardsCursor"`
	ItemsCursor *string `json:"itemsBackwardsCursor"`
}

// ShellCommand is thread/shellCommand.
type ShellCommand struct {
	ThreadID  string `json:"threadId"`
	Command   string `json:"command"`
	TimeoutMs *int64 `json:"timeoutMs,omitempty" doc:"makes no difference: interrupt the turn"`
}

// TurnStart is turn/start.
type TurnStart struct {
	Overrides
	NoEffect
	ThreadID     string          `json:"threadId"`
	Input        []UserInput     `json:"input"`
	ClientID     string          `json:"clientUserMessageId,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	WhenBusy     string          `json:"whenBusy,omitempty" enum:"steer,queue,replace" doc:"what becomes of it while a turn runs; default steer"`
	Returned     []int           `json:"returnedInput,omitempty" doc:"ids of messages of the thread's returnedInput that this one delivers; without input they are sent as they were"`
	Context      json.RawMessage `json:"additionalContext,omitempty" doc:"has no effect"`
	ToolOutput   json.RawMessage `json:"toolOutput,omitempty" doc:"has no effect"`
}

// TurnStarted answers turn/start.
type TurnStarted struct {
	Turn  Turn   `json:"turn"`
	State string `json:"state" enum:"started,steered,queued"` // what became of the message
}

// TurnSteer is turn/steer.
type TurnSteer struct {
	ThreadID       string          `json:"threadId"`
	Input          []UserInput     `json:"input"`
	ExpectedTurnID string          `json:"expectedTurnId"`
	ClientID       string          `json:"clientUserMessageId,omitempty"`
	Metadata       json.RawMessage `json:"responsesapiClientMetadata,omitempty" doc:"has no effect"`
	MetadataPatch  json.RawMessage `json:"responsesapiClientMetadataPatch,omitempty" doc:"has no effect"`
	Context        json.RawMessage `json:"additionalContext,omitempty" doc:"has no effect"`
}

// TurnName answers turn/steer.
type TurnName struct {
	TurnID string `json:"turnId"`
}

// TurnInterrupt is turn/interrupt.
type TurnInterrupt struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId" doc:"empty: whatever runs"`
}

// ReviewStart is review/start.
type ReviewStart struct {
	ThreadID string       `json:"threadId"`
	Target   ReviewTarget `json:"target"`
	Delivery string       `json:"delivery,omitempty" enum:"inline"`
}

// A ReviewTarget is what to review.
type ReviewTarget struct {
	Type         string `json:"type" enum:"uncommittedChanges,baseBranch,commit,custom"`
	Branch       string `json:"branch,omitempty"`
	SHA          string `json:"sha,omitempty"`
	Title        string `json:"title,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

// ReviewStarted answers review/start.
type ReviewStarted struct {
	Turn           Turn   `json:"turn"`
	ReviewThreadID string `json:"reviewThreadId"`
}
