package managecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
)

func deleteCommand(s cli.Streams) *cobra.Command {
	var yes, archived bool
	cmd := &cobra.Command{
		Use:               "delete ID",
		Short:             "Delete a conversation",
		Long:              "Delete a conversation and all its files. This cannot be undone; fermata archive only hides it.",
		Example:           "  fermata delete 01a1df48\n  fermata delete --yes 01a1df48",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			return deleteConversation(cmd.Context(), s, a[0], archived, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&archived, "archived", false, "look for ID among the archived conversations")
	return cmd
}

func deleteConversation(ctx context.Context, s cli.Streams, name string, archived, yes bool) error {
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return err
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	id, err := app.FindAmong(ctx, e, name, engine.ListOptions{Archived: archived})
	if err != nil {
		return err
	}
	if !yes && !cli.Confirm(s, fmt.Sprintf("Delete conversation %s?", id)) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("nothing was deleted"), Hint: "--yes deletes without asking"}
	}
	if err := e.Delete(ctx, id); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "deleted %s\n", id)
	return nil
}
