package managecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func showCommand(s cli.Streams) *cobra.Command {
	var asJSON, following bool
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Show a conversation",
		Long:              "Show a conversation, whichever process runs it. ID is an id, the beginning of one, or a title. On a terminal Markdown is drawn; a pipe or a file gets it as the model wrote it.",
		Example:           "  fermata show 01a1df48\n  fermata show --follow 01a1df48\n  fermata show --json 01a1df48 | jq .kind",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			if following {
				return follow(cmd.Context(), e, id, s, asJSON)
			}
			if asJSON {
				return showJSON(cmd.Context(), e.Local, id, s.Out)
			}
			return show(cmd.Context(), e.Local, id, s)
		},
	}
	cmd.Flags().BoolVarP(&following, "follow", "f", false, "keep printing what happens, until Ctrl-C")
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

// Follow prints what happens in a conversation, until a signal comes or stdout is closed.
func Follow(ctx context.Context, e *remote.Router, id p.ConversationID, s cli.Streams) error {
	return follow(ctx, e, id, s, false)
}

func follow(ctx context.Context, e *remote.Router, id p.ConversationID, s cli.Streams, asJSON bool) error {
	ctx, _ = cli.StopSignals(ctx)
	ctx = cli.WhileRead(ctx, s.RawOut)
	return followed(ctx, tailTo(ctx, e, id, s, asJSON))
}

// followed is how a tail ends: by the signal that it waits for, because no reader
// reads it any more, or by an error.
func followed(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), cli.ErrStdoutClosed), errors.Is(err, unix.EPIPE):
		return &cli.ExitError{Code: cli.ExitStdoutClosed}
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// tailTo prints events as they come, or draws them as exec does.
func tailTo(ctx context.Context, e *remote.Router, id p.ConversationID, s cli.Streams, asJSON bool) error {
	draw := exec.Follow(cli.Printing(cli.NewStreams(s.In, s.RawOut, s.RawOut), cli.ColorAuto))
	if asJSON {
		enc := json.NewEncoder(s.Out)
		draw = func(ev p.Event) error { return enc.Encode(ev) }
	}
	for ev, err := range e.Watch(ctx, id) {
		if err != nil {
			return err
		}
		if err := draw(ev); err != nil {
			return err
		}
	}
	return nil
}

func show(ctx context.Context, e *engine.Local, id p.ConversationID, s cli.Streams) error {
	var t transcript.Transcript
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return err
		}
		t.Apply(ev)
	}
	if _, err := fmt.Fprintf(s.Out, "conversation %s\n%s · %s\n", id, safetext.Strip(t.Settings.Cwd), safetext.Strip(t.Settings.Model)); err != nil {
		return err
	}
	o := cli.Printing(cli.NewStreams(s.In, s.RawOut, s.RawOut), cli.ColorAuto)
	o.Markdown = markdownFor(o)
	return exec.Show(o, id, &t)
}

// markdownFor draws Markdown as the terminal UI does, or is nil: what a pipe, a file or a
// terminal without escape codes gets is the text as the model wrote it.
func markdownFor(o exec.Output) func(string, int) []string {
	if !o.OutTerminal || o.Plain {
		return nil
	}
	look := theme.Options{Color: o.Color, Dark: cli.DarkTerminal()}
	if l, err := app.Load(app.Options{}); err == nil { // a conversation can be read without a configuration
		look = look.With(l.Config.Screen.Theme)
	}
	t := theme.New(look)
	return func(text string, width int) []string { return draw.Markdown(text, width, t) }
}
