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
	p "github.com/fermata-agent/fermata/protocol"
)

func undoCommand(s streams) *cobra.Command {
	var turn int
	var yes bool
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "put back the files that a turn changed",
		Long: "Put back the files that a turn changed. The diff is shown first. If a file has changed since, nothing is done.\n" +
			"The model is told at the next turn.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			return undo(cmd.Context(), s, e, id, p.TurnID(turn), yes)
		},
	}
	cmd.Flags().IntVar(&turn, "turn", 0, "the turn to undo; the last one that changed files unless given")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// undo shows what will happen, asks, and does it.
func undo(ctx context.Context, s streams, e *engine.Local, id p.ConversationID, turn p.TurnID, yes bool) error {
	say := func(format string, args ...any) { fmt.Fprintf(s.err, "fermata: "+format+"\n", args...) }
	snap, err := e.Resume(ctx, id)
	if err != nil {
		return err
	}
	tellRepairs(s, snap)
	u, err := app.PlanUndo(ctx, e, id, turn)
	if err != nil {
		return err
	}
	for _, note := range u.Notes {
		say("%s", note)
	}
	fmt.Fprint(s.err, u.Diff)
	if u.Files == 0 {
		say("the files are what they were before turn %d", u.Turn)
		return nil
	}
	if !yes {
		fmt.Fprintf(s.err, "Put %d files back to before turn %d? [y/N] ", u.Files, u.Turn)
		answer, _ := bufio.NewReader(s.in).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return &exitError{code: exitFailed, err: errors.New("nothing was undone"), hint: "--yes does not ask"}
		}
	}
	if err := u.Do(ctx); err != nil {
		return err
	}
	say("turn %d is undone", u.Turn)
	return nil
}
