package servecmd

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/monitor"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/observe"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// monitorFlags are those of metrics and the log.
type monitorFlags struct {
	run     *cli.RunFlags
	address string
	token   secrets.File
	log     string
	level   string

	monitor *monitor.Monitor // nil if neither is asked for
}

func (f *monitorFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "metrics", "", "serve /metrics, in the text format of Prometheus, and /healthz at `IP:PORT`")
	fs.Var(&f.token, "metrics-token-file", "with --metrics: `FILE` with the bearer token that clients of /metrics must show, at least 16 characters")
	fs.StringVar(&f.log, "log", "", "write what the server does to `FILE`, as lines of JSON; it is rotated at 10 MiB, and three older ones are kept; - is stderr")
	fs.StringVar(&f.level, "log-level", "info", "with --log: from which `LEVEL` on: debug, info, warn, error")
}

func (f *monitorFlags) service(s cli.Streams, fs *pflag.FlagSet, _ []string) (app.Service, error) {
	switch {
	case f.log == "" && fs.Changed("log-level"):
		return nil, cli.Usagef("serve: --log-level needs --log")
	case f.address == "" && f.token.IsSet():
		return nil, cli.Usagef("serve: --metrics-token-file needs --metrics")
	case f.address == "" && f.log == "":
		return nil, nil
	}
	log, err := f.openLog(s)
	if err != nil {
		return nil, err
	}
	m := monitor.New(cli.Version(), log)
	if f.address != "" {
		if err := monitor.CheckAddress(f.address, f.token.IsSet()); err != nil {
			return nil, cli.Usagef("serve: --metrics: %w", err)
		}
		if m.Token, err = f.readToken(); err != nil {
			return nil, err
		}
		m.Address = f.address
		m.Ready = func(at net.Addr) { fmt.Fprintf(s.Err, "fermata: metrics at http://%s/metrics\n", at) }
	}
	f.monitor, f.run.Watch = m, m.Watch()
	return m, nil
}

func (f *monitorFlags) openLog(s cli.Streams) (*slog.Logger, error) {
	level, err := observe.ParseLevel(f.level)
	if err != nil {
		return nil, cli.Usagef("serve: --log-level: %w", err)
	}
	switch f.log {
	case "":
		return slog.New(slog.DiscardHandler), nil
	case "-":
		return observe.NewLog(s.Err, level), nil
	}
	file, err := observe.OpenFile(f.log) // closed by the end of the program
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return observe.NewLog(file, level), nil
}

func (f *monitorFlags) readToken() (string, error) {
	if !f.token.IsSet() {
		return "", nil
	}
	home, err := config.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	text, err := f.token.Read(secrets.Home(home))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token, err := observe.CheckToken(text)
	if err != nil {
		return "", cli.Usagef("serve: --metrics-token-file: %w", err)
	}
	return token, nil
}
