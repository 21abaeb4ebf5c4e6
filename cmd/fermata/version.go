package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

func versionCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  fermata version",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "fermata %s\n", cli.Version())
			return err
		},
	}
}
