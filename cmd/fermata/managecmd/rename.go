package managecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	p "github.com/fermata-agent/fermata/protocol"
)

func renameCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "rename ID TITLE",
		Short:             "Give a conversation a title",
		Long:              "Give a conversation a title. Wherever an ID is wanted, the title can be used instead.",
		Example:           "  fermata rename 01a1df48 \"Fix the parser\"\n  fermata resume \"Fix the parser\"",
		Args:              cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			title := strings.TrimSpace(a[1])
			if title == "" {
				return cli.Usagef("rename: the title is empty")
			}
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			if _, err := e.Submit(cmd.Context(), id, p.Rename{Title: title}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Err, "renamed %s\n", id)
			return err
		},
	}
}
