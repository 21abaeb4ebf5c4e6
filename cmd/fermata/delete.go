package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
)

func deleteCommand(s streams) *cobra.Command {
	var yes, archived bool
	cmd := &cobra.Command{
		Use:               "delete ID",
		Short:             "Delete a conversation",
		Long:              "Delete a conversation and all its files. This cannot be undone; fermata archive only hides it.",
		Example:           "  fermata delete 01a1df48\n  fermata delete --yes 01a1df48",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: completeIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			return deleteConversation(cmd.Context(), s, a[0], archived, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&archived, "archived", false, "look for ID among the archived conversations")
	return cmd
}

func deleteConversation(ctx context.Context, s streams, name string, archived, yes bool) error {
	e, err := app.OpenStore(ctx, version())
	if err != nil {
		return err
	}
	defer e.Shutdown(context.WithoutCancel(ctx))
	id, err := app.FindAmong(ctx, e, name, engine.ListOptions{Archived: archived})
	if err != nil {
		return err
	}
	if !yes && !confirm(s, fmt.Sprintf("Delete conversation %s?", id)) {
		return &exitError{code: exitFailed, err: errors.New("nothing was deleted"), hint: "--yes deletes without asking"}
	}
	if err := e.Delete(ctx, id); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "deleted %s\n", id)
	return nil
}

// confirm asks a question that is answered by y or n.
func confirm(s streams, question string) bool {
	fmt.Fprintf(s.err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(s.in).ReadString('\n')
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes"
}
