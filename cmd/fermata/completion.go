package main

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	p "github.com/fermata-agent/fermata/protocol"
)

// completionMax is how many conversations a shell is offered.
const completionMax = 50

// completeIDs offers conversations, those changed last first, as the first argument.
func completeIDs(archived bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		e, err := app.OpenStore(cmd.Context(), version())
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		page, err := e.List(cmd.Context(), engine.ListOptions{Limit: completionMax, Archived: archived})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		for _, c := range page.Items {
			list = append(list, cobra.CompletionWithDesc(string(c.ID), c.Title))
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// flagValues are the values that flags take, wherever they are.
var flagValues = map[string][]string{
	"sandbox":          {string(p.SandboxReadOnly), string(p.SandboxWorkspaceWrite), string(p.SandboxFullAccess)},
	"ask-for-approval": {string(p.ApprovalUntrusted), string(p.ApprovalOnFailure), string(p.ApprovalOnRequest), string(p.ApprovalNever)},
	"color":            {colorAlways, colorNever, colorAuto},
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
