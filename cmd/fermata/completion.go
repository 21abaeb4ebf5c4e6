package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	sandboxModes     = []string{string(p.SandboxReadOnly), string(p.SandboxWorkspaceWrite), string(p.SandboxFullAccess)}
	approvalPolicies = []string{string(p.ApprovalUntrusted), string(p.ApprovalOnFailure), string(p.ApprovalOnRequest), string(p.ApprovalNever)}
)

// flagValues are the values that flags take, wherever they are.
var flagValues = map[string][]string{
	"sandbox":          sandboxModes,
	"max-sandbox":      sandboxModes,
	"ask-for-approval": approvalPolicies,
	"min-approval":     approvalPolicies,
	"approval":         {"allow", "ask", "deny"},
	"color":            {cli.ColorAlways, cli.ColorNever, cli.ColorAuto},
}

// completeFlags lets shells complete the values of flags of a command and of those
// below it.
func completeFlags(cmd *cobra.Command) {
	for name, values := range flagValues {
		if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if cmd.Flags().Lookup("cd") != nil {
		_ = cmd.MarkFlagDirname("cd")
	}
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}
