package managecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	p "github.com/fermata-agent/fermata/protocol"
)

func archiveCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "archive ID...",
		Short:   "Hide conversations from the list",
		Long:    "Hide conversations from the list. Nothing is deleted: fermata list --archived shows them, and fermata unarchive brings them back.",
		Example: "  fermata archive 01a1df48",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return manage(cmd.Context(), s, names, false, "archived", func(e engine.Engine, id p.ConversationID) error { return e.Archive(cmd.Context(), id) })
		},
		ValidArgsFunction: cli.CompleteIDs(false),
	}
}

func unarchiveCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "unarchive ID...",
		Short:   "Bring archived conversations back",
		Long:    "Bring archived conversations back to the list.",
		Example: "  fermata list --archived\n  fermata unarchive 01a1df48",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return manage(cmd.Context(), s, names, true, "unarchived", func(e engine.Engine, id p.ConversationID) error { return e.Unarchive(cmd.Context(), id) })
		},
		ValidArgsFunction: cli.CompleteIDs(true),
	}
}

// manage does something to each of the named conversations, once all of them
// are found.
func manage(ctx context.Context, s cli.Streams, names []string, archived bool, done string, do func(engine.Engine, p.ConversationID) error) error {
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return err
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	var ids []p.ConversationID
	for _, name := range names {
		id, err := app.FindAmong(ctx, e, name, engine.ListOptions{Archived: archived})
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := do(e, id); err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "%s %s\n", done, id)
	}
	return nil
}
