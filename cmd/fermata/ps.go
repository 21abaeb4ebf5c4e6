package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func psCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "ps ID [CMD]",
		Short: "list the background commands of a conversation",
		Long: "List the background commands of a conversation that run, also if another process runs it. " +
			"With CMD, the number of one, print what that has printed since it went to the background.",
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			list, err := app.Jobs(cmd.Context(), e, id)
			if err != nil {
				return err
			}
			if len(a) == 1 {
				return printJobs(s.out, list, time.Now())
			}
			j, err := pickJob(list, a[1])
			if err != nil {
				return err
			}
			if len(j.Output) > recordedMost-utf8.UTFMax {
				fmt.Fprintln(s.err, "fermata: this is the first MiB; what follows is recorded when the command ends")
			}
			_, err = io.WriteString(s.out, j.Output)
			return err
		},
	}
}

// recordedMost is how much of a command's output is recorded while it runs.
const recordedMost = 1 << 20

func killCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "kill ID CMD",
		Short: "end a background command",
		Long:  "End a background command of a conversation and everything it started, also if another process runs the conversation. CMD is its number: see fermata ps.",
		Args:  args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			list, err := app.Jobs(cmd.Context(), e, id)
			if err != nil {
				return err
			}
			j, err := pickJob(list, a[1])
			if err != nil {
				return err
			}
			if err := app.KillJob(cmd.Context(), e, id, j); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "ended %d: %s\n", j.ID, commandLine(j.Command))
			return err
		},
	}
}

func printJobs(w io.Writer, list []app.Job, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no background command runs")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CMD\tSTATE\tFOR\tPID\tCOMMAND")
	for _, j := range list {
		state := "running"
		if !j.Running() {
			state = "gone"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\n", j.ID, state, now.Sub(j.Since).Round(time.Second), j.PID(), commandLine(j.Command))
	}
	return t.Flush()
}

// commandLine is a command as one would type it, in one line.
func commandLine(argv []string) string {
	return strings.Join(strings.Fields(transcript.CommandLine(argv)), " ")
}

func pickJob(list []app.Job, number string) (app.Job, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return app.Job{}, usage("%q is not the number of a background command", number)
	}
	return app.FindJob(list, p.BackgroundID(n))
}
