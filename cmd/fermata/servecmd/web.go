package servecmd

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/webcmd"
	"github.com/fermata-agent/fermata/internal/config"
)

func webCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	var page webcmd.Flags
	var manage webcmd.Manage
	var noOpen bool
	cmd := &cobra.Command{
		Use:   "web [HOST:PORT]",
		Short: "Serve a page to watch, stop, steer and approve in the browser, and open it",
		Long: "Serve a page to watch, stop, steer and approve conversations in the browser, and open it. Whoever\n" +
			"opens the link can do what you can do: see docs/security.md.",
		Example: "  fermata web\n  fermata web --no-open 127.0.0.1:7777",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if manage.Asked() {
				return manageWeb(s, page, manage, cmd.Flags(), a)
			}
			if page.Address == "" {
				page.Address = webcmd.Default
			}
			if err := page.TakeAddress(a); err != nil {
				return cli.Usagef("web: %w", err)
			}
			return serveWeb(cmd.Context(), s, f, page, !noOpen)
		},
	}
	f.Register(cmd.Flags())
	f.RegisterLimits(cmd.Flags())
	page.Register(cmd.Flags())
	manage.Register(cmd.Flags())
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "only print the link")
	return cmd
}

// serveWeb serves the page until a signal comes.
func serveWeb(ctx context.Context, s cli.Streams, f cli.RunFlags, page webcmd.Flags, open bool) error {
	return runServer(ctx, s, f, pageService{s, page, open}.Serve)
}

// manageWeb makes, lists and revokes links to a page that is served, by whichever process.
func manageWeb(s cli.Streams, page webcmd.Flags, m webcmd.Manage, fs *pflag.FlagSet, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("%q: --link, --list and --revoke take no address", args[0])
	}
	if name, ok := m.Excludes(fs); ok {
		return cli.Usagef("--%s has no effect on links: --link, --list and --revoke only use a page that is served", name)
	}
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	err = m.Do(home, page, webcmd.Options{Out: s.Out, Err: s.Err, Terminal: cli.Terminal(s.RawErr)})
	if errors.Is(err, webcmd.ErrNotServed) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: err, Hint: "start it with fermata web"}
	}
	return err
}
