package protocol

import (
	"encoding/json"
	"time"
)

// A CommandResult is how a process ended, and what it printed.
type CommandResult struct {
	ExitCode int           `json:"exit_code"`
	Signal   string        `json:"signal,omitempty"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Output   string        `json:"output"`           // both streams as they arrived, head and tail; need not be UTF-8
	Stderr   [][2]int      `json:"stderr,omitempty"` // the ranges of Output that are stderr
	Omitted  int64         `json:"omitted,omitempty"`
	Killed   int           `json:"killed,omitempty"`
	Elapsed  time.Duration `json:"elapsed"` // nanoseconds
	// Background, if set, says that it has not ended: it runs as this background
	// command, and ExitCode means nothing.
	Background BackgroundID `json:"background,omitempty"`
}

// A PatchResult is what became of a patch.
type PatchResult struct {
	Applied bool `json:"applied"` // all of it; otherwise nothing
	// Unsettled says that the outcome is not yet known; opening the conversation
	// settles it.
	Unsettled bool   `json:"unsettled,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Diff      string `json:"diff,omitempty"` // in git's format
}

// An MCPTool names a tool of an MCP server.
type MCPTool struct {
	Server string `json:"server"`
	Name   string `json:"name"`
}

// An MCPResult is what an MCP server answered.
type MCPResult struct {
	Tool MCPTool `json:"tool"`
	// Result is the answer as the protocol has it: content, structuredContent, isError.
	Result  json.RawMessage `json:"result,omitempty"`
	Omitted int64           `json:"omitted,omitempty"` // bytes of text that were left out of Result
	Error   string          `json:"error,omitempty"`   // why there is no answer
}

// A TreeRange is a git repository before and after.
type TreeRange struct {
	Root   string `json:"root"`   // the working tree
	Before string `json:"before"` // names of git trees
	After  string `json:"after"`
}
