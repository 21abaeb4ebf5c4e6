package tuicmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/managecmd"
	"github.com/fermata-agent/fermata/internal/app"
	p "github.com/fermata-agent/fermata/protocol"
)

func attachCommand(s cli.Streams) *cobra.Command {
	var t terminalRun
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "attach [ID]",
		Short: "Join a conversation that another process runs",
		Long: "Join a conversation that another process runs. Without ID, join the only one that is open, or list\n" +
			"those that are. Without a terminal, and with --read-only, only print what happens, until Ctrl-C.",
		Example:           "  fermata attach\n  fermata attach 01a1df48 --read-only",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := checkAttach(cmd.Flags(), readOnly); err != nil {
				return err
			}
			live, err := managecmd.ListLive(cmd.Context())
			if err != nil {
				return err
			}
			id, err := attachTo(cmd.Context(), s, live, a)
			if err != nil {
				return err
			}
			if readOnly || noTerminal(s) != "" {
				return watchConversation(cmd.Context(), s, id)
			}
			t.name = string(id)
			t.flags.Detach = slices.ContainsFunc(live, func(r managecmd.Live) bool { return r.ID == id && r.Serves })
			return t.run(cmd.Context(), s)
		},
	}
	t.flags.register(cmd.Flags())
	_ = cmd.Flags().MarkHidden("detach") // it is refused: see checkAttach
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "only watch")
	return cmd
}

// checkAttach refuses flags that would be ignored.
func checkAttach(fs *pflag.FlagSet, readOnly bool) (err error) {
	if fs.Changed("detach") {
		return cli.Usagef("attach: leave out --detach: the turns run in the process that has the conversation open")
	}
	fs.Visit(func(f *pflag.Flag) {
		if err == nil && readOnly && f.Name != "read-only" {
			err = cli.Usagef("attach: --read-only only watches: leave out --%s", f.Name)
		}
	})
	return err
}

// attachTo returns the conversation to join: the named one, or the only one there is.
func attachTo(ctx context.Context, s cli.Streams, live []managecmd.Live, named []string) (p.ConversationID, error) {
	if len(named) == 1 {
		_, id, err := cli.Find(ctx, named[0])
		return id, err
	}
	live = slices.DeleteFunc(live, func(r managecmd.Live) bool { return r.PID == 0 || r.Err != nil })
	switch len(live) {
	case 0:
		return "", &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("no conversation is open"), Hint: "fermata resume resumes one"}
	case 1:
		return live[0].ID, nil
	}
	if err := managecmd.PrintLive(s.Err, live); err != nil {
		return "", err
	}
	return "", &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%d conversations are open", len(live)), Hint: "name one: fermata attach ID"}
}

// watchConversation prints what happens in a conversation.
func watchConversation(ctx context.Context, s cli.Streams, id p.ConversationID) error {
	e, err := app.OpenStore(ctx, cli.Version())
	if err != nil {
		return err
	}
	return managecmd.Follow(ctx, e, id, s)
}
