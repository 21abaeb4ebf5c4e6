package servecmd

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/acp"
	p "github.com/fermata-agent/fermata/protocol"
)

func acpCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve editors that speak the Agent Client Protocol",
		Long: "Serve sessions to editors such as Zed, JetBrains IDEs, Neovim and Emacs by the Agent Client Protocol (version 1), one JSON message\n" +
			"per line on stdin and stdout. A session is a conversation: fermata attach, the page and fermata send can join it.\n\n" +
			"The end of stdin, SIGINT and SIGTERM interrupt what the editor has started, and everything that runs for it; with --detach, or the\n" +
			"setting detach, turns go on. The conversations can be resumed in any case. docs/editors.md says how to set up each editor.",
		Example: "  fermata acp\n  fermata acp -m gpt-5.5 -s workspace-write\n  fermata acp --demo",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveACP(cmd.Context(), s, f) },
	}
	f.Register(cmd.Flags())
	f.RegisterLimits(cmd.Flags())
	cmd.Flags().BoolVar(&f.Detach, "detach", false, "run turns in a process that outlives the editor: see fermata serve")
	return cmd
}

func serveACP(ctx context.Context, s cli.Streams, f cli.RunFlags) error {
	f.Client, f.Detachable = "acp", true
	return runServer(ctx, s, f, func(ctx context.Context, r *app.App) error {
		server := acp.New(acp.Options{
			Engine: r.Engine, Version: cli.Version(), Settings: r.Settings, Change: r.Change, Allow: savePermission(r), Detached: r.Detached, Local: acpLocal{r},
			Elsewhere: func(id p.ConversationID) bool { return r.Engine.Joined(id) != 0 },
			Log:       slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})), Panicked: r.Panicked(),
		})
		return server.Serve(ctx, s.In, s.RawOut)
	})
}

// acpLocal is what the clients of acp can ask about the machine.
type acpLocal struct{ *app.App }

// ContextWindow is how many tokens a model takes, as far as that is known without asking its service; 0 if it is not.
func (l acpLocal) ContextWindow(s p.Settings) int64 {
	return cmp.Or(s.ContextWindow, l.Config.ContextWindow, l.Config.Window(s.Provider, s.Model))
}

func (l acpLocal) Cost(s p.Settings, u p.Usage) (usd float64, ok bool) { return l.Models.Cost(s, u) }

func (l acpLocal) Allows(s p.Settings) error { return l.Limits().Allow(s) }

// Undo says what putting back the files of a turn would do, if that is allowed.
func (l acpLocal) Undo(ctx context.Context, id p.ConversationID, turn p.TurnID) (*app.Undo, error) {
	if err := l.Limits().AllowUndo(); err != nil {
		return nil, err
	}
	return app.PlanUndo(ctx, l.Engine, id, turn)
}
