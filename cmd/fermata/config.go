package main

import "github.com/spf13/cobra"

func configCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "the configuration"}
	var f runFlags
	show := &cobra.Command{
		Use:   "show",
		Short: "print each value in force and where it came from",
		Args:  args(cobra.NoArgs),
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
