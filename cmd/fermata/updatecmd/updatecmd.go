// Package updatecmd is the command update: it says how this copy of fermata was installed and what updates it, and
// updates it itself where the install script put it.
package updatecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// Command is the command.
func Command(s cli.Streams) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Update fermata, or print how to",
		Long: "Print how this copy of fermata was installed and what to run for a newer one.\n" +
			"A copy that the install script made is replaced, if it was built with a public key: the list of checksums must be signed by that\n" +
			"key, and the archive must be on the list. What runs keeps running as it is.",
		Example: "  fermata update\n  fermata update --check",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := thisMachine()
			if err != nil {
				return err
			}
			ctx, stopped := cli.StopSignals(cmd.Context())
			err = update{s, cli.Version(), cli.UpdateKey(), check}.run(ctx, m.installed())
			return cli.StoppedBy(stopped(), err)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only print what would be done")
	return cmd
}

// An update is one run of the command.
type update struct {
	cli.Streams
	version string // of this copy
	key     string // the public key that releases are signed with; empty if this copy knows none
	check   bool   // change nothing
}

func (u update) run(ctx context.Context, in installation) error {
	fmt.Fprintf(u.Out, "fermata %s, installed by %s\n", u.version, in.by)
	if in.prefix == "" || u.key == "" {
		fmt.Fprintf(u.Out, "to update: %s\n", in.update)
		return nil
	}
	n, err := newest(ctx, in.from, u.key)
	switch {
	case err != nil:
		return err
	case n.version == u.version:
		fmt.Fprintln(u.Out, "this is the newest version")
		return nil
	case !isNewer(n.version, u.version):
		return fmt.Errorf("the newest version that is published is %s, which is older: nothing was changed", n.version)
	case u.check:
		fmt.Fprintf(u.Out, "%s can be installed: fermata update\n", n.version)
		return nil
	}
	if err := n.install(ctx, in.prefix); err != nil {
		return err
	}
	fmt.Fprintf(u.Out, "%s is installed; what runs now stays at its version until it ends\n", n.version)
	return nil
}
