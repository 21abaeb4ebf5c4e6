package managecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

func returnedCommand(s cli.Streams) *cobra.Command {
	var drop, asJSON bool
	cmd := &cobra.Command{
		Use:   "returned ID [NUMBER...]",
		Short: "List or drop messages that were not delivered",
		Long: "List the messages of a conversation that were accepted and not delivered, because their turn was interrupted or its process ended.\n" +
			"They stay returned until fermata exec resume ID --returned sends them, a client takes them, or --drop drops them: all, or those with the given numbers.",
		Example:           "  fermata returned 01a1df48\n  fermata returned 01a1df48 --drop",
		Args:              cli.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: cli.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, a []string) error {
			ids, err := inputIDs(a[1:])
			if err != nil {
				return err
			}
			if asJSON && drop {
				return cli.Usagef("returned: --json lists; leave it out with --drop")
			}
			e, id, err := cli.Find(cmd.Context(), a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			snap, err := e.Resume(cmd.Context(), id)
			if err != nil {
				return err
			}
			list, err := chooseReturned(snap, ids)
			if err != nil {
				return err
			}
			if drop {
				return dropReturned(cmd.Context(), s, e, id, list)
			}
			return listReturned(s, id, list, asJSON)
		},
	}
	cmd.Flags().BoolVar(&drop, "drop", false, "drop them: they are not offered any more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	return cmd
}

func inputIDs(a []string) (ids []p.InputID, err error) {
	for _, text := range a {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 {
			return nil, cli.Usagef("returned: %q is not the number of a message", text)
		}
		ids = append(ids, p.InputID(n))
	}
	return ids, nil
}

// chooseReturned returns the returned messages with the given numbers; all if none is given.
func chooseReturned(snap engine.Snapshot, ids []p.InputID) ([]p.ReturnedInput, error) {
	if len(ids) == 0 {
		return snap.Returned, nil
	}
	var list []p.ReturnedInput
	for _, id := range ids {
		i := slices.IndexFunc(snap.Returned, func(in p.ReturnedInput) bool { return in.Input == id })
		if i < 0 {
			return nil, &cli.ExitError{
				Code: cli.ExitFailed, Err: fmt.Errorf("conversation %s: message %d is not returned", snap.ID, id),
				Hint: fmt.Sprintf("fermata returned %s lists those that are", snap.ID),
			}
		}
		list = append(list, snap.Returned[i])
	}
	return list, nil
}

func dropReturned(ctx context.Context, s cli.Streams, e engine.Engine, id p.ConversationID, list []p.ReturnedInput) error {
	if len(list) == 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("conversation %s: no message is returned", id)}
	}
	op := p.ResolveReturned{As: p.ResolvedDropped}
	for _, in := range list {
		op.Inputs = append(op.Inputs, in.Input)
	}
	if _, err := e.Submit(ctx, id, op); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "dropped %s\n", humanize.Count(len(list), "message"))
	return nil
}

func listReturned(s cli.Streams, id p.ConversationID, list []p.ReturnedInput, asJSON bool) error {
	for _, in := range list {
		if asJSON {
			if err := json.NewEncoder(s.Out).Encode(in); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(s.Out, "%d  %s\n", in.Input, safetext.Strip(p.Written(in.Content))); err != nil {
			return err
		}
	}
	if len(list) == 0 && !asJSON {
		fmt.Fprintf(s.Err, "conversation %s: no message is returned\n", id)
	}
	return nil
}
