package main

import "github.com/spf13/cobra"

func configCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the configuration"}
	var f runFlags
	show := &cobra.Command{
		Use:     "show",
		Short:   "Print every setting in force and where it comes from",
		Example: "  fermata config show\n  fermata config show -p work",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			l, err := f.load(s)
			for _, w := range l.Warnings {
				warn(s, w)
			}
			if err != nil {
				return err
			}
			return l.Config.Show(s.out)
		},
	}
	f.register(show.Flags())
	cmd.AddCommand(show)
	return cmd
}
