package servecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/unreachable"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/surface/appserver"
	"github.com/fermata-agent/fermata/internal/surface/appserver/listen"
)

// appAddress is where an app-server listens, as flags say it.
type appAddress struct {
	listen    string
	auth      string
	tokenFile secrets.File
	tokenID   string
}

// register adds the flags; name is that of the address.
func (f *appAddress) register(fs *pflag.FlagSet, name, address, help string) {
	fs.StringVar(&f.listen, name, address, help)
	fs.StringVar(&f.auth, "ws-auth", "", "`KIND` of token that clients of ws:// must show: capability-token")
	fs.Var(&f.tokenFile, "ws-token-file", "`FILE` with the token, at least 16 characters")
	fs.StringVar(&f.tokenID, "ws-token-sha256", "", "SHA-256 of the token in `HEX`, in place of the token")
}

func appServerCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	var at appAddress
	cmd := &cobra.Command{
		Use:   "app-server",
		Short: "Serve threads and turns to editors and programs",
		Long: "Serve threads and turns in the form that the clients of Codex's app-server know: one JSON message per line on stdin and stdout,\n" +
			"or WebSockets on a unix socket or a TCP address. fermata app-server generate-json-schema lists all messages.\n\n" +
			"On stdio the end of stdin interrupts all turns; SIGINT and SIGTERM do so always. The conversations can be resumed.",
		Example: "  fermata app-server -s workspace-write\n  fermata app-server --listen unix://\n" +
			"  fermata app-server --listen ws://127.0.0.1:4500 --ws-auth capability-token --ws-token-file token\n  fermata app-server generate-json-schema",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveApp(cmd.Context(), s, f, at) },
	}
	f.Register(cmd.Flags())
	f.RegisterLimits(cmd.Flags())
	f.RegisterShareKey(cmd.Flags())
	at.register(cmd.Flags(), "listen", "stdio://", "`ADDRESS` to serve: stdio://, unix://PATH (without PATH: a socket in the home) or ws://IP:PORT")
	cmd.AddCommand(&cobra.Command{
		Use:     "generate-json-schema",
		Short:   "Print all messages as JSON Schema",
		Example: "  fermata app-server generate-json-schema",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(s.Out)
			enc.SetIndent("", "  ")
			return enc.Encode(appserver.Schema())
		},
	})
	return cmd
}

func serveApp(ctx context.Context, s cli.Streams, f cli.RunFlags, at appAddress) error {
	service, err := at.service(s)
	if err != nil {
		return err
	}
	return runServer(ctx, s, f, service.Serve)
}

// An appService serves an app-server.
type appService struct {
	s      cli.Streams
	listen string
	token  *listen.Token
}

// service returns what the flags ask for.
func (f *appAddress) service(s cli.Streams) (*appService, error) {
	token, err := f.token()
	if err != nil {
		return nil, &app.Error{Err: err, Usage: true}
	}
	return &appService{s, f.listen, token}, nil
}

// Serve serves the conversations of r until ctx ends.
func (a *appService) Serve(ctx context.Context, r *app.App) error {
	at, err := listen.Parse(a.listen, filepath.Join(r.Config.Home, "app-server", "app-server.sock"))
	if err == nil && at.Path != "" && at.Path == codexSocket() {
		err = &app.Error{Err: fmt.Errorf("%s is Codex's own socket: choose another path", at.Path), Usage: true}
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.s.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server := appserver.New(ctx, appserver.Options{
		Engine: r.Engine, Version: cli.Version(), Home: r.Config.Home, Cwd: r.Cwd, Settings: r.Settings, Change: r.Change, Allow: savePermission(r), Local: r, Log: log, Panicked: r.Panicked(),
	})
	defer server.Close()
	if at.Stdio {
		return server.Serve(ctx, appserver.Only, a.s.In, a.s.RawOut)
	}
	return listenApp(ctx, a.s, r.Config.Home, at, listen.Options{Token: a.token, Log: log, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		defer r.Busy()()
		return server.Serve(ctx, appserver.Shared, in, out)
	}})
}

func listenApp(ctx context.Context, s cli.Streams, home string, at listen.Address, o listen.Options) error {
	if at.Path != "" {
		if err := secrets.Home(home).Register(at.Path); err != nil {
			return err
		}
	}
	l, err := at.Open(ctx)
	if errors.Is(err, listen.ErrInUse) {
		return &app.Error{Err: err, Hint: "stop the server that is there, or choose another address"}
	}
	if err != nil {
		return err
	}
	if l, err = unreachable.Listener(home, l); err != nil {
		return err
	}
	where := "unix://" + at.Path
	if at.Path == "" {
		where = "ws://" + l.Addr().String()
	}
	fmt.Fprintf(s.Err, "fermata: listening at %s\n", where)
	return listen.Serve(ctx, l, o)
}

// token is what clients must show; nil if nothing. Whoever can connect to a TCP address can run commands, so it needs one.
func (f *appAddress) token() (*listen.Token, error) {
	at, err := listen.Parse(f.listen, "socket")
	switch given := f.tokenFile.IsSet() || f.tokenID != ""; {
	case err != nil:
		return nil, err
	case f.auth != "" && f.auth != "capability-token":
		return nil, fmt.Errorf("--ws-auth %s is not supported: use capability-token", f.auth)
	case at.TCP == "" && (given || f.auth != ""):
		return nil, errors.New("--ws-auth and a token are for --listen ws:// only")
	case at.TCP == "":
		return nil, nil
	case f.auth == "" || !given:
		return nil, errors.New("--listen ws:// needs a token: add --ws-auth capability-token and --ws-token-file FILE, or listen at unix://")
	case f.tokenFile.IsSet() && f.tokenID != "":
		return nil, errors.New("--ws-token-file and --ws-token-sha256: only one of them")
	case f.tokenFile.IsSet():
		home, err := config.Home(os.Getenv)
		if err != nil {
			return nil, err
		}
		return listen.ReadToken(secrets.Home(home), &f.tokenFile)
	}
	return listen.ParseHash(f.tokenID)
}

// savePermission lets something run unasked from now on, because a client says so.
func savePermission(r *app.App) func(project.Permission) error {
	return func(perm project.Permission) error {
		if err := r.Limits().AllowPermission(); err != nil {
			return err
		}
		return r.Projects.Allow(perm)
	}
}

// codexSocket is where Codex looks for its own server.
func codexSocket() string {
	user, _ := os.UserHomeDir() // without one Codex has none either
	home := cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(user, ".codex"))
	return filepath.Join(home, "app-server-control", "app-server-control.sock")
}
