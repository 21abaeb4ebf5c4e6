package managecmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/background"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func psCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "ps [ID [CMD]]",
		Short: "List what runs, or the background commands of a conversation",
		Long: "List everything that runs in this home, and on all machines that share its store, whichever process runs it:\nconversations, turns, background commands, turns that wait.\n" +
			"With ID, list the running background commands of a conversation; with the number CMD of one, print its output so far.",
		Example:           "  fermata ps\n  fermata ps 01a1df48\n  fermata ps 01a1df48 1",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if len(a) == 0 {
				rows, err := ListLive(cmd.Context())
				if err != nil {
					return err
				}
				return PrintLive(s.Out, rows)
			}
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			list, err := background.List(cmd.Context(), e, id)
			if err != nil {
				return err
			}
			if len(a) == 1 {
				return printJobs(s.Out, list, time.Now())
			}
			j, err := pickJob(list, a[1])
			if err != nil {
				return err
			}
			if len(j.Output) > maxRecorded-utf8.UTFMax {
				fmt.Fprintln(s.Err, "fermata: this is the first MiB of the output; the rest is recorded when the command ends")
			}
			_, err = io.WriteString(s.Out, j.Output)
			return err
		},
	}
}

// maxRecorded is how much of a command's output is recorded while it runs.
const maxRecorded = 1 << 20

func killCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "kill ID CMD",
		Short:             "Stop a background command",
		Long:              "Stop a background command of a conversation and everything it started, whichever process runs the conversation. CMD is its number in fermata ps.",
		Example:           "  fermata kill 01a1df48 1",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			list, err := background.List(cmd.Context(), e, id)
			if err != nil {
				return err
			}
			j, err := pickJob(list, a[1])
			if err != nil {
				return err
			}
			if err := background.Kill(cmd.Context(), e, id, j); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "stopped %d: %s\n", j.ID, commandLine(j.Command))
			return err
		},
	}
}

func printJobs(w io.Writer, list []background.Command, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no background commands are running")
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

func pickJob(list []background.Command, number string) (background.Command, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return background.Command{}, cli.Usagef("%q is not the number of a background command", number)
	}
	return background.Find(list, p.BackgroundID(n))
}
