package setupcmd

import (
	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
)

func configCommand(o Options) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the configuration", Example: "  fermata config show"}
	var load func() (app.Loaded, error)
	show := &cobra.Command{
		Use:     "show",
		Short:   "Print every setting in force and where it comes from",
		Example: "  fermata config show\n  fermata config show -p work",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			l, err := load()
			for _, w := range l.Warnings {
				o.warn(w)
			}
			if err != nil {
				return err
			}
			return l.Config.Show(o.Out)
		},
	}
	load = o.LoadFlags(show.Flags())
	cmd.AddCommand(show)
	return cmd
}
