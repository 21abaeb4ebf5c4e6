package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
)

func storeCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Copy conversations between files and NATS",
		Example: "  fermata store copy --from files --to nats://localhost:4222",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeCopyCommand(s))
	return cmd
}

func storeCopyCommand(s streams) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE [ID...]",
		Short: "Copy conversations from one store to another, and compare them",
		Long: "Copy conversations from one store to another, all of them if no ID is given, and compare each afterwards. A store is\n" +
			"\"files\", a directory, or nats://HOST:PORT with the other settings of [store]. What is there already is completed; nothing is\n" +
			"deleted. A conversation that is open is left out and reported.",
		Example: "  fermata store copy --from files --to nats://localhost:4222\n  fermata store copy --from nats://localhost:4222 --to ./backup 01a1df48",
		RunE: func(cmd *cobra.Command, ids []string) error {
			copied, records := 0, 0
			err := app.CopyStore(cmd.Context(), from, to, ids, func(id string, n int, err error) {
				if err != nil {
					fmt.Fprintf(s.err, "fermata: %s: %v\n", id, err)
					return
				}
				copied++
				records += n
			})
			fmt.Fprintf(s.out, "%s with %s copied and compared\n", plural(copied, "conversation"), plural(records, "record"))
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "where conversations are, a `STORE`: files, a directory, or nats://HOST:PORT")
	cmd.Flags().StringVar(&to, "to", "", "the `STORE` to copy them to")
	return cmd
}
