// Package wire holds the messages of the Agent Client Protocol, stable version 1, as far as they are used here. The tests of
// package acp check every message against the published schema.
package wire

import "encoding/json"

// Version is the version of the protocol.
const Version = 1

// Codes of errors that JSON-RPC does not have.
const (
	CodeAuth     = -32000 // a login is needed
	CodeNotFound = -32002 // there is no such session or file
)

// None is a result or params without members of interest.
type None struct{}

// An Implementation is a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Initialize is the first request of a client.
type Initialize struct {
	ProtocolVersion int                `json:"protocolVersion"`
	Capabilities    ClientCapabilities `json:"clientCapabilities,omitzero"`
	Info            *Implementation    `json:"clientInfo,omitempty"`
}

// ClientCapabilities are what a client offers.
type ClientCapabilities struct {
	FS struct {
		Read  bool `json:"readTextFile,omitempty"`
		Write bool `json:"writeTextFile,omitempty"`
	} `json:"fs,omitzero"`
	Auth struct {
		Terminal bool `json:"terminal,omitempty"`
	} `json:"auth,omitzero"`
	Elicitation struct {
		Form *None `json:"form,omitempty"`
		URL  *None `json:"url,omitempty"`
	} `json:"elicitation,omitzero"`
	Session struct {
		Notices    *None `json:"notices,omitempty"`
		Compaction *None `json:"compaction,omitempty"`
	} `json:"session,omitzero"`
	Meta struct {
		TerminalOutput bool `json:"terminal_output,omitempty"`
		TerminalAuth   bool `json:"terminal-auth,omitempty"`
	} `json:"_meta,omitzero"`
}

// Initialized is the answer.
type Initialized struct {
	ProtocolVersion int               `json:"protocolVersion"`
	Capabilities    AgentCapabilities `json:"agentCapabilities"`
	AuthMethods     []AuthMethod      `json:"authMethods"`
	Info            Implementation    `json:"agentInfo"`
}

// AgentCapabilities are what we offer.
type AgentCapabilities struct {
	LoadSession bool                `json:"loadSession"`
	Prompt      PromptCapabilities  `json:"promptCapabilities"`
	MCP         MCPCapabilities     `json:"mcpCapabilities"`
	Session     SessionCapabilities `json:"sessionCapabilities"`
	Auth        None                `json:"auth"`
	Meta        map[string]any      `json:"_meta,omitempty"`
}

// PromptCapabilities are the kinds of content that a prompt may have.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// MCPCapabilities are the kinds of MCP servers that a session may have beside programs.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// SessionCapabilities are the methods for sessions.
type SessionCapabilities struct {
	List   *None `json:"list,omitempty"`
	Resume *None `json:"resume,omitempty"`
	Close  *None `json:"close,omitempty"`
	Delete *None `json:"delete,omitempty"`
}

// An AuthMethod is a way to log in.
type AuthMethod struct {
	Type        string         `json:"type,omitempty"`
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Args        []string       `json:"args,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// Authenticate chooses one.
type Authenticate struct {
	MethodID string `json:"methodId"`
}

// Session begins every request about a session.
type Session struct {
	SessionID string `json:"sessionId"`
}

// NewSession asks for a session.
type NewSession struct {
	Cwd         string      `json:"cwd"`
	MCPServers  []MCPServer `json:"mcpServers,omitempty"`
	Directories []string    `json:"additionalDirectories,omitempty"`
}

// OpenSession asks for one that exists.
type OpenSession struct {
	Session
	NewSession
}

// An MCPServer is one that a client brings: a program, or an address if it has a type.
type MCPServer struct {
	Type    string   `json:"type,omitempty"`
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []Pair   `json:"env,omitempty"`
	URL     string   `json:"url,omitempty"`
	Headers []Pair   `json:"headers,omitempty"`
}

// A Pair is an environment variable or a header.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NewSessionResult is the answer to NewSession.
type NewSessionResult struct {
	SessionID string `json:"sessionId"`
	State
}

// State is what can be chosen in a session, and what is chosen.
type State struct {
	Modes   *Modes   `json:"modes,omitempty"`
	Options []Option `json:"configOptions,omitempty"`
}

// Modes are the modes of a session.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// A Mode is one of them.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// An Option is something that can be chosen.
type Option struct {
	Type        string   `json:"type"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Category    string   `json:"category,omitempty"`
	Current     string   `json:"currentValue"`
	Options     []Choice `json:"options"`
}

// A Choice is a value of an option.
type Choice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// SetMode changes the mode.
type SetMode struct {
	Session
	ModeID string `json:"modeId"`
}

// SetModel changes the model, for clients that know an earlier version of the protocol.
type SetModel struct {
	Session
	ModelID string `json:"modelId"`
}

// SetOption changes an option.
type SetOption struct {
	Session
	ConfigID string          `json:"configId"`
	Value    json.RawMessage `json:"value"`
}

// Options is the answer to it.
type Options struct {
	Options []Option `json:"configOptions"`
}

// List asks for sessions.
type List struct {
	Cwd    string `json:"cwd,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Sessions is the answer.
type Sessions struct {
	Sessions   []SessionInfo  `json:"sessions"`
	NextCursor string         `json:"nextCursor,omitempty"`
	Meta       map[string]any `json:"_meta,omitempty"`
}

// SessionInfo is what a list shows of a session.
type SessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// Prompt is a message of the user.
type Prompt struct {
	Session
	Prompt []Block `json:"prompt"`
}

// PromptResult says why the turn ended.
type PromptResult struct {
	StopReason string         `json:"stopReason"`
	Meta       map[string]any `json:"_meta,omitempty"`
}

// The reasons.
const (
	EndTurn   = "end_turn"
	Cancelled = "cancelled"
)

// A Block is a part of a message.
type Block struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MimeType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// Text returns a block of text.
func Text(text string) Block { return Block{Type: "text", Text: &text} }

// A Resource is one whose content is part of a message.
type Resource struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     string  `json:"blob,omitempty"`
}
