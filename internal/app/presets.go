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
	{"careful", "reads files; asks before any command that is not known to be safe", p.ApprovalUntrusted, p.SandboxReadOnly},
	{"read-only", "reads files; asks before it writes or uses the network", p.ApprovalOnRequest, p.SandboxReadOnly},
	{"workspace", "writes in the directory; asks before anything else", p.ApprovalOnRequest, p.SandboxWorkspaceWrite},
	{"on failure", "writes in the directory; asks if the sandbox made a command fail", p.ApprovalOnFailure, p.SandboxWorkspaceWrite},
	{"never asks", "writes in the directory; anything else fails", p.ApprovalNever, p.SandboxWorkspaceWrite},
	{"full access", "no sandbox, never asks: only where nothing can be damaged", p.ApprovalNever, p.SandboxFullAccess},
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
