package app

import (
	"reflect"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Preset is a choice of approvals and sandbox that go together.
type Preset struct {
	Name, Help string
	Approval   p.ApprovalPolicy
	Mode       p.SandboxMode
}

// Presets are those that people choose from, the strictest first.
var Presets = []Preset{
	{"careful", "reads freely; asks before anything it does not know to be harmless", p.ApprovalUntrusted, p.SandboxReadOnly},
	{"read-only", "reads freely; asks before it writes or uses the network", p.ApprovalOnRequest, p.SandboxReadOnly},
	{"workspace", "writes below the directory; asks for more", p.ApprovalOnRequest, p.SandboxWorkspaceWrite},
	{"hands-off", "writes below the directory; asks when a command fails for being confined", p.ApprovalOnFailure, p.SandboxWorkspaceWrite},
	{"no questions", "writes below the directory; what needs more fails", p.ApprovalNever, p.SandboxWorkspaceWrite},
	{"unconfined", "everything, without a question: only where nothing can be harmed", p.ApprovalNever, p.SandboxFullAccess},
}

// In reports whether the settings are those of the preset.
func (pr Preset) In(s p.Settings) bool { return pr.Approval == s.Approval && pr.Mode == s.Sandbox.Mode }

// Overrides returns what the preset changes about the settings of a conversation. What the
// conversation or the configuration says of writable directories and the network stays
// in force. cfg may be nil.
func (pr Preset) Overrides(now p.Settings, cfg *config.Config) p.Overrides {
	sandbox := now.Sandbox
	if none := (p.SandboxPolicy{Mode: sandbox.Mode}); cfg != nil && sandbox.Mode != pr.Mode && reflect.DeepEqual(sandbox, none) {
		sandbox = cfg.Sandbox(pr.Mode) // other modes than workspace-write begin without these details
	}
	sandbox.Mode = pr.Mode
	return p.Overrides{Approval: &pr.Approval, Sandbox: &sandbox}
}
