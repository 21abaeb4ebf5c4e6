package managecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/style"
	p "github.com/fermata-agent/fermata/protocol"
)

func undoCommand(s cli.Streams) *cobra.Command {
	var turn int
	var yes bool
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Restore the files that a turn changed",
		Long: "Restore the files that a turn changed. The diff is shown first. If a file has changed since, nothing is done.\n" +
			"The model is informed with the next turn.",
		Example:           "  fermata undo 01a1df48\n  fermata undo --turn 3 01a1df48",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if cmd.Flags().Changed("turn") && turn < 1 {
				return cli.Usagef("undo: --turn must be at least 1")
			}
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			return undo(cmd.Context(), s, e, id, p.TurnID(turn), yes)
		},
	}
	cmd.Flags().IntVar(&turn, "turn", 0, "undo turn `N`; default is the last one that changed files")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// undo shows what will happen, asks, and does it.
func undo(ctx context.Context, s cli.Streams, e app.Conversations, id p.ConversationID, turn p.TurnID, yes bool) error {
	say := func(format string, args ...any) { fmt.Fprintf(s.Err, "fermata: "+format+"\n", args...) }
	snap, err := e.Resume(ctx, id)
	if err != nil {
		return err
	}
	cli.ReportRepairs(s, snap)
	u, err := app.PlanUndo(ctx, e, id, turn)
	if err != nil {
		return err
	}
	for _, note := range u.Notes {
		say("%s", note)
	}
	fmt.Fprint(s.RawErr, colorDiff(u.Diff, cli.Printing(s, cli.ColorAuto).Color))
	if u.Files == 0 {
		say("nothing to do: the files are as they were before turn %d", u.Turn)
		return nil
	}
	if !yes {
		if !cli.Confirm(s, fmt.Sprintf("Restore %s to the state before turn %d?", humanize.Count(u.Files, "file"), u.Turn)) {
			return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("nothing was undone"), Hint: "--yes undoes without asking"}
		}
	}
	if err := u.Do(ctx); err != nil {
		return err
	}
	say("turn %d was undone", u.Turn)
	return nil
}

// colorDiff is a unified diff for a terminal: sanitized, and in colour if that is wanted.
func colorDiff(text string, color bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		look := style.Plain
		switch {
		case !color, strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			look = style.Green
		case strings.HasPrefix(line, "-"):
			look = style.Red
		case strings.HasPrefix(line, "@@"):
			look = style.Dim
		}
		line = safetext.Strip(strings.TrimSuffix(line, "\n"))
		b.WriteString(look.Put(line) + "\n")
	}
	return b.String()
}
