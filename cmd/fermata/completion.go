package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	p "github.com/fermata-agent/fermata/protocol"
)

// completionCommand prints what makes a shell complete commands, flags and conversations.
func completionCommand(s cli.Streams) *cobra.Command {
	print := map[string]func(*cobra.Command, io.Writer) error{
		"bash": func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"zsh":  func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	}
	shells := slices.Sorted(maps.Keys(print))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands in a shell",
		Long: "Print a script that lets a shell complete commands, flags, their values and conversations. SHELL is bash, fish or zsh.\n" +
			"bash needs its package bash-completion, zsh compinit.",
		Example: "  source <(fermata completion bash)\n" +
			"  fermata completion bash > /etc/bash_completion.d/fermata\n" +
			"  fermata completion zsh > \"${fpath[1]}/_fermata\"\n" +
			"  fermata completion fish > ~/.config/fish/completions/fermata.fish",
		ValidArgs: shells,
		Args:      cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			script, ok := print[a[0]]
			if !ok {
				return cli.Usagef("completion: there is none for %q, only for %s", a[0], strings.Join(shells, ", "))
			}
			return script(cmd.Root(), s.Out)
		},
	}
}

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
