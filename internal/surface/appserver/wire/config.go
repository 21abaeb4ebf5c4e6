package wire

import "encoding/json"

// ConfigRead is config/read.
type ConfigRead struct {
	IncludeLayers bool   `json:"includeLayers,omitempty"`
	Cwd           string `json:"cwd,omitempty"`
}

// ConfigAnswer answers it.
type ConfigAnswer struct {
	Config  map[string]any         `json:"config"`
	Origins map[string]ConfigLayer `json:"origins"` // by key; those that have their default are not there
	Layers  []ConfigLayer          `json:"layers,omitempty"`
}

// A ConfigLayer is a place that settings come from.
type ConfigLayer struct {
	Name    LayerName      `json:"name"`
	Version string         `json:"version"`          // a checksum
	Config  map[string]any `json:"config,omitempty"` // in a list of layers
}

// A LayerName names it.
type LayerName struct {
	Type    string `json:"type" enum:"user,sessionFlags"`
	File    string `json:"file,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// ConfigWrite is config/batchWrite.
type ConfigWrite struct {
	Edits           []ConfigEdit `json:"edits"`
	FilePath        string       `json:"filePath,omitempty" doc:"refused unless it is the user's file"`
	ExpectedVersion string       `json:"expectedVersion,omitempty" doc:"makes no difference: each edit is of one key"`
	Reload          bool         `json:"reloadUserConfig,omitempty" doc:"makes no difference: new threads read the file"`
}

// ConfigValueWrite is config/value/write.
type ConfigValueWrite struct {
	ConfigEdit
	FilePath        string `json:"filePath,omitempty" doc:"refused unless it is the user's file"`
	ExpectedVersion string `json:"expectedVersion,omitempty" doc:"makes no difference"`
}

// A ConfigEdit changes a key. The value null removes it.
type ConfigEdit struct {
	KeyPath       string `json:"keyPath"`
	Value         any    `json:"value"`
	MergeStrategy string `json:"mergeStrategy,omitempty" doc:"makes no difference: only texts can be written"`
}

// ConfigWritten answers both.
type ConfigWritten struct {
	Status   string `json:"status" enum:"ok"`
	Version  string `json:"version"`
	FilePath string `json:"filePath"`
}

// Requirements answers configRequirements/read; null: everything is allowed.
type Requirements struct {
	Requirements *Allowed `json:"requirements"`
}

// Allowed is what threads may have here. What is not there is not limited.
type Allowed struct {
	Approval []string `json:"allowedApprovalPolicies,omitempty"`
	Sandbox  []string `json:"allowedSandboxModes,omitempty"`
}

// ServerStatusList is mcpServerStatus/list.
type ServerStatusList struct {
	Cursor     string `json:"cursor,omitempty"`
	Limit      int    `json:"limit,omitempty"`
	Detail     string `json:"detail,omitempty" doc:"makes no difference: resources are not used"`
	ServerName string `json:"serverName,omitempty"`
	ThreadID   string `json:"threadId,omitempty" doc:"makes no difference: all threads have the same servers"`
}

// ServerStatuses answers it.
type ServerStatuses struct {
	Data       []ServerStatus `json:"data"`
	NextCursor *string        `json:"nextCursor"`
}

// A ServerStatus is what is known of an MCP server.
type ServerStatus struct {
	Name              string                `json:"name"`
	ServerInfo        *ServerInfo           `json:"serverInfo"`
	Tools             map[string]ServerTool `json:"tools"`
	ToolsError        *string               `json:"toolsError"`
	Resources         []None                `json:"resources"`
	ResourceTemplates []None                `json:"resourceTemplates"`
	AuthStatus        string                `json:"authStatus" enum:"unsupported,bearerToken,oAuth"`
	RuntimeStatus     string                `json:"runtimeStatus" enum:"notStarted,starting,connected,failed"`
	HTTPOrigin        *string               `json:"httpOrigin"`
}

// ServerInfo is what a server calls itself.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A ServerTool is a tool of an MCP server.
type ServerTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations *ToolHints      `json:"annotations,omitempty"`
}

// ToolHints are what a server says of a tool.
type ToolHints struct {
	ReadOnly bool `json:"readOnlyHint"`
}
