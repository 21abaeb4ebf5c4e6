package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/model/demo"
)

func demoModelCommand(s cli.Streams) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:     "demo-model",
		Short:   "Serve the demo model over HTTP, to test other agents",
		Long:    "Serve the demo model on POST /v1/responses. The URL is printed on stdout. It understands:\n\n" + demo.Help,
		Example: "  fermata demo-model --listen 127.0.0.1:8080",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, _ := cli.StopSignals(cmd.Context())
			return serveDemo(ctx, s, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "listen on `ADDRESS`")
	return cmd
}

func serveDemo(ctx context.Context, s cli.Streams, listen string) error {
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return cli.Usagef("--listen must be HOST:PORT, such as 127.0.0.1:8080, not %q", listen)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		var why *os.SyscallError
		if errors.As(err, &why) {
			err = why.Err
		}
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	fmt.Fprintf(s.Out, "http://%s/v1\n", l.Addr())
	srv := &http.Server{Handler: demo.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with ctx
		<-ctx.Done()
		srv.Close() // a response that runs is cut: a stop means stop
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
