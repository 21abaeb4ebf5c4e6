package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
)

func sandboxCommand(s cli.Streams) *cobra.Command {
	var f cli.RunFlags
	cmd := &cobra.Command{
		Use:     "sandbox [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a command in the sandbox that the model's commands run in",
		Long:    "Run a command in the sandbox that the model's commands run in, as the configuration or --sandbox says. It gets no input; its exit code is returned.",
		Example: "  fermata sandbox -- touch /tmp/x\n  fermata sandbox -s workspace-write -- make test",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runSandboxed(cmd.Context(), s, f, argv)
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func runSandboxed(ctx context.Context, s cli.Streams, f cli.RunFlags, argv []string) error {
	l, err := f.Load(s)
	if err != nil {
		return err
	}
	cfg, cwd := l.Config, l.Options.Cwd
	spec := proc.Spec{Argv: argv, Dir: cwd, Env: app.Environ(cfg)}
	box, err := sandbox.New(cfg.Settings(config.Choice{}, cwd, "").Sandbox, app.SandboxPlace(cfg, spec))
	if err != nil {
		return err
	}
	for _, note := range box.Notes() {
		fmt.Fprintf(s.Err, "fermata: %s\n", note)
	}
	if err := box.Set(&spec); err != nil {
		return err
	}
	spawner, err := proc.NewSpawner()
	if err != nil {
		return err
	}
	defer spawner.Close()
	ctx, stopped := cli.StopSignals(ctx)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	var unwritten error
	res := spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) {
		if stream == proc.Stderr {
			_, _ = s.RawErr.Write(b) // as ever, what cannot be said there is no reason to stop
			return
		}
		if _, err := s.RawOut.Write(b); err != nil {
			unwritten = err
			leave(err)
		}
	})
	switch sig := stopped(); {
	case sig != nil:
		return &cli.ExitError{Code: cli.SignalCode(sig)}
	case errors.Is(unwritten, unix.EPIPE):
		return &cli.ExitError{Code: cli.ExitStdoutClosed}
	case unwritten != nil:
		return unwritten
	case res.Err != nil:
		return errors.New(res.Err.Error()) // whatever it lacks, it is nothing of ours: no hint fits
	case res.Signal != "":
		return &cli.ExitError{Code: cli.SignalCode(unix.SignalNum(res.Signal)), Err: fmt.Errorf("%s was killed by %s", argv[0], res.Signal)}
	case res.ExitCode != 0:
		return &cli.ExitError{Code: res.ExitCode}
	}
	return nil
}
