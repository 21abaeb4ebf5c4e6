package wire

import "encoding/json"

// A UserInput is a part of what a user says.
type UserInput struct {
	Type         string           `json:"type" enum:"text,image,localImage,audio,localAudio,skill,mention"`
	Text         *string          `json:"text,omitempty"`
	TextElements *json.RawMessage `json:"text_elements,omitempty"`
	URL          string           `json:"url,omitempty"`
	Detail       string           `json:"detail,omitempty"`
	Path         string           `json:"path,omitempty"`
	Name         string           `json:"name,omitempty"`
}

// TextInput is input that is a text.
func TextInput(text string) UserInput {
	none := json.RawMessage("[]")
	return UserInput{Type: "text", Text: &text, TextElements: &none}
}

// An Item is a piece of a turn: one of the types below.
type Item struct{ Of any }

// Variants lists what an item can be.
func (Item) Variants() []any {
	return []any{
		UserMessage{},
		AgentMessage{},
		Reasoning{},
		CommandExecution{},
		FileChange{},
		MCPToolCall{},
		DynamicToolCall{},
		WebSearch{},
		ImageView{},
		ContextCompaction{},
		ReviewMode{},
	}
}

// MarshalJSON writes what the item is.
func (i Item) MarshalJSON() ([]byte, error) { return json.Marshal(i.Of) }

// The items.
type (
	// A UserMessage is what the user said.
	UserMessage struct {
		Type     string      `json:"type" enum:"userMessage"`
		ID       string      `json:"id"`
		ClientID *string     `json:"clientId"`
		Content  []UserInput `json:"content"`
	}

	// An AgentMessage is what the model said.
	AgentMessage struct {
		Type    string  `json:"type" enum:"agentMessage"`
		ID      string  `json:"id"`
		Text    string  `json:"text"`
		Phase   *string `json:"phase"`
		Partial bool    `json:"partial,omitempty"` // it ends where it was interrupted
	}

	// Reasoning is what the model thought.
	Reasoning struct {
		Type    string   `json:"type" enum:"reasoning"`
		ID      string   `json:"id"`
		Summary []string `json:"summary"`
		Content []string `json:"content"`
	}

	// A CommandExecution is a command.
	CommandExecution struct {
		Type             string          `json:"type" enum:"commandExecution"`
		ID               string          `json:"id"`
		Command          string          `json:"command"`
		Cwd              string          `json:"cwd"`
		ProcessID        *string         `json:"processId"`
		Source           string          `json:"source" enum:"agent,userShell,unifiedExecStartup,unifiedExecInteraction"`
		Status           string          `json:"status" enum:"inProgress,completed,failed,declined"`
		CommandActions   []CommandAction `json:"commandActions"`
		AggregatedOutput *string         `json:"aggregatedOutput"`
		ExitCode         *int            `json:"exitCode"`
		DurationMs       *int64          `json:"durationMs"`
	}

	// A FileChange is a patch.
	FileChange struct {
		Type    string       `json:"type" enum:"fileChange"`
		ID      string       `json:"id"`
		Changes []FileUpdate `json:"changes"`
		Status  string       `json:"status" enum:"inProgress,completed,failed,declined"`
	}

	// An MCPToolCall is a call of a tool of an MCP server.
	MCPToolCall struct {
		Type       string          `json:"type" enum:"mcpToolCall"`
		ID         string          `json:"id"`
		Server     string          `json:"server"`
		Tool       string          `json:"tool"`
		Status     string          `json:"status" enum:"inProgress,completed,failed"`
		Arguments  json.RawMessage `json:"arguments"`
		Result     *MCPResult      `json:"result"`
		Error      *MCPError       `json:"error"`
		DurationMs *int64          `json:"durationMs"`
	}

	// A DynamicToolCall is a call of any other tool.
	DynamicToolCall struct {
		Type         string          `json:"type" enum:"dynamicToolCall"`
		ID           string          `json:"id"`
		Namespace    *string         `json:"namespace"`
		Tool         string          `json:"tool"`
		Arguments    json.RawMessage `json:"arguments"`
		Status       string          `json:"status" enum:"inProgress,completed,failed"`
		ContentItems []ToolContent   `json:"contentItems"`
		Success      *bool           `json:"success"`
		DurationMs   *int64          `json:"durationMs"`
	}

	// A WebSearch is a look at the web.
	WebSearch struct {
		Type   string     `json:"type" enum:"webSearch"`
		ID     string     `json:"id"`
		Query  string     `json:"query"`
		Action *WebAction `json:"action"`
	}

	// An ImageView is a look at an image.
	ImageView struct {
		Type string `json:"type" enum:"imageView"`
		ID   string `json:"id"`
		Path string `json:"path"`
	}

	// A ContextCompaction stands where the history was replaced by a summary.
	ContextCompaction struct {
		Type string `json:"type" enum:"contextCompaction"`
		ID   string `json:"id"`
	}

	// ReviewMode is the beginning or the end of a review.
	ReviewMode struct {
		Type   string `json:"type" enum:"enteredReviewMode,exitedReviewMode"`
		ID     string `json:"id"`
		Review string `json:"review"`
	}
)

// A CommandAction says what a command does, as far as that is known.
type CommandAction struct {
	Type    string  `json:"type" enum:"read,listFiles,search,unknown"`
	Command string  `json:"command"`
	Name    string  `json:"name,omitempty"`
	Path    *string `json:"path,omitempty"`
	Query   *string `json:"query,omitempty"`
}

// A FileUpdate is what a patch does to one file.
type FileUpdate struct {
	Path string     `json:"path"`
	Kind UpdateKind `json:"kind"`
	Diff string     `json:"diff"`
}

// An UpdateKind says what is done to a file.
type UpdateKind struct {
	Type     string  `json:"type" enum:"add,delete,update"`
	MovePath *string `json:"move_path,omitempty"`
}

// An MCPResult is what an MCP server answered.
type MCPResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	Meta              json.RawMessage `json:"_meta"`
}

// An MCPError is why an MCP server has not answered.
type MCPError struct {
	Message string `json:"message"`
}

// A ToolContent is a part of what a tool answered.
type ToolContent struct {
	Type string `json:"type" enum:"inputText"`
	Text string `json:"text"`
}

// A WebAction is what was done on the web.
type WebAction struct {
	Type string `json:"type" enum:"openPage"`
	URL  string `json:"url"`
}
