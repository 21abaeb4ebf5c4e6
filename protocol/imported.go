package protocol

// Imported ends what was read from a conversation of another agent. Everything before it is from there.
type Imported struct {
	Agent   string   `json:"agent"`            // as people know it
	Session string   `json:"session"`          // the agent's own name for the conversation
	Parent  string   `json:"parent,omitempty"` // of a subagent: the session that started it
	Path    string   `json:"path"`             // where it was
	Model   string   `json:"model,omitempty"`  // that it was had with
	Branch  string   `json:"branch,omitempty"` // of git, when it began
	Commit  string   `json:"commit,omitempty"` // of git, when it began
	Steps   int      `json:"steps"`            // how much was read
	Sum     string   `json:"sum"`              // checksum of that
	Turns   TurnID   `json:"turns"`            // the last turn
	Open    bool     `json:"open,omitempty"`   // that one had not ended
	Losses  []string `json:"losses,omitempty"` // what could not be read
}

func (*Imported) isBody() {}
