package items

import (
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// Settings are the settings of a conversation as clients know them.
func Settings(s p.Settings) wire.ThreadSettings {
	mode := "default"
	if s.Plan {
		mode = "plan"
	}
	return wire.ThreadSettings{
		ApprovalPolicy: Approval(s.Approval), ApprovalsReviewer: "user", Cwd: s.Cwd, Model: s.Model, ModelProvider: s.Provider,
		CollaborationMode: wire.CollaborationMode{Mode: mode, Settings: wire.ModeSettings{Model: s.Model, Effort: text(s.Effort)}},
		SandboxPolicy:     Sandbox(s.Sandbox), Effort: text(s.Effort), Summary: text(s.Summary),
	}
}

// Approval is an approval policy as clients know it: they do not know on-failure.
func Approval(a p.ApprovalPolicy) string {
	switch a {
	case p.ApprovalNever, p.ApprovalUntrusted:
		return string(a)
	}
	return string(p.ApprovalOnRequest)
}

// Sandbox is a sandbox policy as clients know it.
func Sandbox(s p.SandboxPolicy) wire.SandboxPolicy {
	switch s.Mode {
	case p.SandboxFullAccess:
		return wire.SandboxPolicy{Type: "dangerFullAccess"}
	case p.SandboxWorkspaceWrite:
		roots := append([]string{}, s.WritableRoots...)
		return wire.SandboxPolicy{
			Type: "workspaceWrite", WritableRoots: &roots, NetworkAccess: s.NetworkAccess,
			ExcludeTmpdirEnvVar: &s.ExcludeTmpdirEnvVar, ExcludeSlashTmp: &s.ExcludeSlashTmp,
		}
	}
	return wire.SandboxPolicy{Type: "readOnly", NetworkAccess: s.NetworkAccess}
}
