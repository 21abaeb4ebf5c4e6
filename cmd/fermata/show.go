package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func showCommand(s streams) *cobra.Command {
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Show a conversation",
		Long:              "Show a conversation, whichever process runs it. ID is an id, the beginning of one, or a title.",
		Example:           "  fermata show 01a1df48\n  fermata show --follow 01a1df48\n  fermata show --json 01a1df48 | jq .kind",
		ValidArgsFunction: completeIDs(false),
		Args:              args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			if follow {
				ctx, _ := stopSignals(cmd.Context())
				ctx = whileRead(ctx, s.rawOut)
				return followed(ctx, tailTo(ctx, e, id, s, asJSON))
			}
			if asJSON {
				return showJSON(cmd.Context(), e, id, s.out)
			}
			return show(cmd.Context(), e, id, safetext.NewWriter(s.rawOut)) // also into a pipe: less -R and cat pass it on
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing what happens, until Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print events as JSON, one per line")
	return cmd
}

func showJSON(ctx context.Context, e *engine.Local, id p.ConversationID, w io.Writer) error {
	enc := json.NewEncoder(w)
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return err
		}
		if err := enc.Encode(ev); err != nil {
			return err
		}
	}
	return nil
}

// followed is how a tail ends: by the signal that it waits for, because nobody
// reads it any more, or by an error.
func followed(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errUnread), errors.Is(err, unix.EPIPE):
		return &exitError{code: exitUnread}
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// tailTo prints events as they come, or draws them as exec does.
func tailTo(ctx context.Context, e *engine.Local, id p.ConversationID, s streams, asJSON bool) error {
	draw := exec.Follow(printing(newStreams(s.in, s.rawOut, s.rawOut), colorAuto))
	if asJSON {
		enc := json.NewEncoder(s.out)
		draw = func(ev p.Event) error { return enc.Encode(ev) }
	}
	for ev, err := range e.Tail(ctx, id) {
		if err != nil {
			return err
		}
		if err := draw(ev); err != nil {
			return err
		}
	}
	return nil
}

func show(ctx context.Context, e *engine.Local, id p.ConversationID, w io.Writer) error {
	var t transcript.Transcript
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return err
		}
		t.Apply(ev)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "conversation %s\n%s · %s\n", id, t.Settings.Cwd, t.Settings.Model)
	for _, it := range t.Items {
		fmt.Fprintf(&b, "\n%s", drawn(it))
	}
	if t.Active {
		fmt.Fprintf(&b, "\nturn %d has not ended\n", t.Turn)
	}
	for _, in := range t.Inputs {
		fmt.Fprintf(&b, "\nnot delivered yet: %s\n", p.PlainText(in.Content))
	}
	for _, in := range t.Returned {
		if !in.Deleted {
			fmt.Fprintf(&b, "\nnot delivered: %s\nto send it again: fermata exec resume %s --returned\n", p.PlainText(in.Content), id)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// drawn is an item as plain text.
func drawn(it *transcript.Item) string {
	mark := ""
	switch it.Status {
	case transcript.Interrupted:
		mark = " [interrupted]"
	case transcript.Asking:
		mark = " [waiting for approval]"
	case transcript.Declined:
		mark = " [declined]"
	}
	switch it.Kind {
	case transcript.User:
		return "> " + strings.ReplaceAll(strings.TrimRight(it.Text, "\n"), "\n", "\n> ") + "\n"
	case transcript.Call:
		if len(it.Changes) > 0 {
			var b strings.Builder
			for _, c := range it.Changes {
				b.WriteString(c.Line(it.Cwd) + "\n")
			}
			if it.Status != transcript.Done { // else the changes say it all
				b.WriteString(it.Output)
			}
			return "$ apply_patch" + mark + "\n" + indent(b.String())
		}
		return "$ " + callLine(it) + mark + "\n" + indent(it.Output)
	case transcript.Background:
		return fmt.Sprintf("· background command %d: %s%s\n", it.Background, callLine(it), mark) + indent(it.Output)
	case transcript.Reasoning:
		return indent("(thinking) " + it.Text + mark)
	case transcript.Plan:
		var b strings.Builder
		for _, step := range it.Plan {
			fmt.Fprintf(&b, "[%s] %s\n", step.Status, step.Step)
		}
		return b.String()
	case transcript.Message:
		return strings.TrimRight(it.Text, "\n") + mark + "\n"
	}
	return "· " + it.Text + "\n"
}

func callLine(it *transcript.Item) string {
	line := it.CommandLine()
	if line == "" {
		line = it.Tool + " " + it.Arguments
	}
	switch {
	case it.Kind == transcript.Call && it.Background != 0:
		line += fmt.Sprintf("  (continued in the background as %d)", it.Background)
	case it.TimedOut:
		line += fmt.Sprintf("  (timed out after %s)", it.Elapsed(time.Now()))
	case it.Status == transcript.Failed:
		line += fmt.Sprintf("  (%s, %s)", it.Failure(), it.Elapsed(time.Now()))
	case it.Status == transcript.Done:
		line += fmt.Sprintf("  (%s)", it.Elapsed(time.Now()))
	}
	return line
}

func indent(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}
