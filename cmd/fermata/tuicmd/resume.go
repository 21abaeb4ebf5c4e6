package tuicmd

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

func resumeCommand(s cli.Streams) *cobra.Command {
	var t terminalRun
	cmd := &cobra.Command{
		Use:   "resume [ID|--last] [PROMPT]",
		Short: "Resume a conversation in the terminal UI",
		Long: "Resume a conversation in the terminal UI. ID is an id, the beginning of one, or a title; " +
			"without one, choose from a list.",
		Example:           "  fermata resume\n  fermata resume --last",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			switch {
			case t.last && len(a) > 1:
				return cli.Usagef("resume: --last takes one prompt, got %d arguments", len(a))
			case t.last:
				t.prompt = a
			case len(a) == 0:
				t.pick = true
			default:
				t.name, t.prompt = a[0], a[1:]
			}
			if why := noTerminal(s); why != "" {
				return t.exec(cmd, s, why)
			}
			return t.run(cmd.Context(), s)
		},
	}
	t.flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&t.last, "last", false, "resume the conversation that was changed last in this directory")
	cmd.Flags().BoolVar(&t.all, "all", false, "with --last: look in all directories")
	return cmd
}
