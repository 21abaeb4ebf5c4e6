package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	p "github.com/fermata-agent/fermata/protocol"
)

func renameCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:               "rename ID TITLE",
		Short:             "Give a conversation a title",
		Long:              "Give a conversation a title. Wherever an ID is wanted, the title can be used instead.",
		Example:           "  fermata rename 01a1df48 \"Fix the parser\"\n  fermata resume \"Fix the parser\"",
		Args:              args(cobra.ExactArgs(2)),
		ValidArgsFunction: completeIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			title := strings.TrimSpace(a[1])
			if title == "" {
				return usage("rename: the title is empty")
			}
			e, id, err := find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			if _, err := e.Submit(cmd.Context(), id, p.Rename{Title: title}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.err, "renamed %s\n", id)
			return err
		},
	}
}
