package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/proc/tree"
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
			list, err := background(cmd.Context(), e, id)
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
			if j.output.Len() > recordedMost-utf8.UTFMax {
				fmt.Fprintln(s.err, "fermata: this is the first MiB; what follows is recorded when the command ends")
			}
			_, err = io.WriteString(s.out, j.output.String())
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
			list, err := background(cmd.Context(), e, id)
			if err != nil {
				return err
			}
			j, err := pickJob(list, a[1])
			if err != nil {
				return err
			}
			if err := killJob(cmd.Context(), e, id, j); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "ended %d: %s\n", j.ID, commandLine(j.Command))
			return err
		},
	}
}

// A job is a background command as it is recorded.
type job struct {
	p.BackgroundStarted
	since   time.Time
	process tree.Identity
	output  strings.Builder
}

// background returns the background commands of which no end is recorded.
func background(ctx context.Context, e *engine.Local, id p.ConversationID) ([]*job, error) {
	var list []*job
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		switch b := ev.Body.(type) {
		case *p.BackgroundStarted:
			j := &job{BackgroundStarted: *b, since: ev.Time}
			_ = json.Unmarshal(b.Process, &j.process) // without it, it counts as gone
			list = append(list, j)
		case *p.BackgroundEnded:
			list = dropJob(list, b.ID)
		case *p.Delta:
			for _, j := range list {
				if b.Item == j.ID.Item() {
					j.output.WriteString(b.Text)
				}
			}
		}
	}
	return list, nil
}

func dropJob(list []*job, id p.BackgroundID) []*job {
	for i, j := range list {
		if j.ID == id {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

func printJobs(w io.Writer, list []*job, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no background command runs")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CMD\tSTATE\tFOR\tPID\tCOMMAND")
	for _, j := range list {
		state := "running"
		if !tree.Running(j.process) {
			state = "gone" // its fermata died; opening the conversation records that
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\n", j.ID, state, now.Sub(j.since).Round(time.Second), cmp.Or(tree.CommandPID(j.process), j.process.PID), commandLine(j.Command))
	}
	return t.Flush()
}

// commandLine is a command as one would type it, in one line.
func commandLine(argv []string) string {
	return strings.Join(strings.Fields(transcript.CommandLine(argv)), " ")
}

func pickJob(list []*job, number string) (*job, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, usage("%q is not the number of a background command", number)
	}
	for _, j := range list {
		if int(j.ID) == n {
			return j, nil
		}
	}
	return nil, noJob(n)
}

func noJob(n int) error {
	return &exitError{code: exitFailed, err: fmt.Errorf("background command %d: %w", n, engine.ErrNoBackground), hint: "fermata ps ID lists those that run"}
}

// killJob ends a command through its supervisor: whoever runs the conversation
// sees it end and records that. If nobody does, opening it ends what is left.
func killJob(ctx context.Context, e *engine.Local, id p.ConversationID, j *job) error {
	told, err := tree.End(j.process)
	if told || err != nil {
		return err
	}
	_, err = e.Resume(ctx, id)
	if locked := (*engine.LockedError)(nil); errors.As(err, &locked) {
		return noJob(int(j.ID)) // it has ended, and its owner is about to say so
	}
	if err != nil {
		return err
	}
	return e.Shutdown(ctx)
}
