// Package servecmd holds the commands that serve: fermata serve, web, app-server, acp and mcp-server. What
// they serve is in the packages below internal/surface.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/work"
)

// serveIdle is after how long without anything to do a process that serves ends.
const serveIdle = 10 * time.Minute

// Commands returns fermata web, mcp-server, app-server, acp and serve.
func Commands(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{webCommand(s), mcpServerCommand(s), appServerCommand(s), acpCommand(s), serveCommand(s)}
}

func serveCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	var idle time.Duration
	var started bool
	page := &pageServiceFlags{}
	watch := &monitorFlags{run: &f}
	node := &nodeServiceFlags{run: &f, watch: watch}
	beside := []serviceFlags{watch, &appServiceFlags{}, page, node} // the node reports to what watches
	cmd := &cobra.Command{
		Use:   "serve [HOST:PORT]",
		Short: "Run turns in a process that outlives the terminal",
		Long: "Run turns for other processes, so that a turn outlives the terminal that started it. There is one such process\n" +
			"for each home; --detach and the setting detach start it on demand. It ends when nothing has been going on for some time;\n" +
			"a pending approval and a turn that waits for a limit count as something. With --http it serves a page to watch, stop, steer\n" +
			"and approve, with --app-server threads and turns for editors and programs, with --node it runs turns that fermata exec --fleet submits on\n" +
			"any machine; then it does not end by itself. SIGINT and SIGTERM end it and every turn it runs.",
		Example: "  fermata exec --detach \"Run the tests and fix what fails\"\n  fermata serve --idle 0\n" +
			"  fermata serve --http\n  fermata serve --app-server unix://\n  fermata serve --node build-1 --labels gpu,linux\n  fermata serve --revoke all",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if page.manage.Asked() {
				return manageWeb(s, page.page, page.manage, cmd.Flags(), a)
			}
			o := app.ServeOptions{Idle: idle}
			for _, b := range beside {
				service, err := b.service(s, cmd.Flags(), a)
				if err != nil {
					return err
				}
				if service != nil {
					o.Services = append(o.Services, service)
				}
			}
			if len(o.Services) > 0 && !cmd.Flags().Changed("idle") {
				o.Idle = 0
			}
			f.Client, f.Serve = "serve", true
			return serve(cmd.Context(), s, f, o, serveProcess{started, node.gentle()})
		},
	}
	f.Register(cmd.Flags())
	f.RegisterLimits(cmd.Flags())
	cmd.Flags().DurationVar(&idle, "idle", serveIdle, "end after this `TIME` without anything to do, such as 10m; 0 is never")
	cmd.Flags().BoolVar(&started, "started", false, "it was started by another process")
	_ = cmd.Flags().MarkHidden("started")
	for _, b := range beside {
		b.register(cmd.Flags())
	}
	return cmd
}

// A serveProcess is how the process that serves was started, and how it ends.
type serveProcess struct {
	started bool // by another process
	gentle  cli.Gentle
}

func serve(ctx context.Context, s cli.Streams, f cli.RunFlags, o app.ServeOptions, how serveProcess) error {
	if o.Idle < 0 {
		return cli.Usagef("serve: --idle must not be negative")
	}
	return runServerGently(ctx, s, f, how.gentle, func(ctx context.Context, r *app.App) error {
		context.AfterFunc(ctx, r.Engine.Leave)
		o.Ready = func(pid int) {
			fmt.Fprintf(s.Err, "fermata: process %d serves %s\n", pid, r.Config.Home)
			if pid != os.Getpid() {
				fmt.Fprintln(s.Err, "fermata: a client has started it; this one serves beside it, and in its place when it ends")
			}
		}
		o.OnDemand = how.started
		err := r.Serve(ctx, o)
		if errors.Is(err, work.ErrDrained) {
			fmt.Fprintln(s.Err, "fermata: the node was drained, and ends")
			return nil
		}
		if errors.Is(err, app.ErrServed) && how.started { // whoever started us finds the other one
			return nil
		}
		if errors.Is(err, app.ErrServed) {
			return &cli.ExitError{Code: cli.ExitFailed, Err: err, Hint: "end it first (kill), or serve the page beside it with fermata web"}
		}
		return err
	})
}

// runServer opens the application and serves it until a signal comes.
func runServer(ctx context.Context, s cli.Streams, f cli.RunFlags, serve func(context.Context, *app.App) error) error {
	return runServerGently(ctx, s, f, cli.Gentle{}, serve)
}

func runServerGently(ctx context.Context, s cli.Streams, f cli.RunFlags, g cli.Gentle, serve func(context.Context, *app.App) error) error {
	r, err := f.Open(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stopped := cli.StopSignalsGently(ctx, g)
	err = serve(ctx, r)
	if stopped() != nil { // a server that ends at a signal has succeeded
		return nil
	}
	return err
}
