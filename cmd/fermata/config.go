package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/config"
)

func configCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "the configuration"}
	var f runFlags
	show := &cobra.Command{
		Use:   "show",
		Short: "print each value in force and where it came from",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			cwd, err := workdir(f.dir)
			if err != nil {
				return err
			}
			cfg, warnings, err := config.Load(config.Options{Cwd: cwd, Env: os.Getenv, Profile: f.profile, Overrides: f.config, Flags: f.typed})
			for _, w := range warnings {
				fmt.Fprintf(s.err, "fermata: warning: %v\n", w)
			}
			if err != nil {
				return configError(err)
			}
			return cfg.Show(s.out)
		},
	}
	f.register(show.Flags())
	cmd.AddCommand(show)
	return cmd
}
