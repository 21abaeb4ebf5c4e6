package servecmd

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/webcmd"
	"github.com/fermata-agent/fermata/internal/app"
)

// A serviceFlags is the flags of fermata serve for one service beside the socket.
type serviceFlags interface {
	register(fs *pflag.FlagSet)

	// service returns what the flags ask for, nil if that is nothing.
	service(s cli.Streams, fs *pflag.FlagSet, args []string) (app.Service, error)
}

// appServiceFlags are those of the app-server.
type appServiceFlags struct{ at appAddress }

func (f *appServiceFlags) register(fs *pflag.FlagSet) {
	f.at.register(fs, "app-server", "", "serve threads and turns as well, as fermata app-server does, at `ADDRESS`: unix://PATH or ws://IP:PORT")
}

func (f *appServiceFlags) service(s cli.Streams, fs *pflag.FlagSet, _ []string) (app.Service, error) {
	switch {
	case f.at.listen == "" && (fs.Changed("ws-auth") || fs.Changed("ws-token-file") || fs.Changed("ws-token-sha256")):
		return nil, cli.Usagef("serve: a token needs --app-server ws://IP:PORT")
	case f.at.listen == "":
		return nil, nil
	case f.at.listen == "stdio://":
		return nil, cli.Usagef("serve: --app-server stdio://: many are served; use unix:// or ws://, or run fermata app-server")
	}
	service, err := f.at.service(s)
	if err != nil {
		return nil, err
	}
	return service, nil
}

// pageServiceFlags are those of the page.
type pageServiceFlags struct {
	page   webcmd.Flags
	manage webcmd.Manage
}

func (f *pageServiceFlags) register(fs *pflag.FlagSet) {
	f.page.Register(fs)
	f.manage.Register(fs)
}

func (f *pageServiceFlags) service(s cli.Streams, fs *pflag.FlagSet, args []string) (app.Service, error) {
	if err := f.page.TakeAddress(args); err != nil {
		return nil, cli.Usagef("serve: %w", err)
	}
	if name, given := f.page.Given(fs); given && f.page.Address == "" {
		return nil, cli.Usagef("serve: --%s needs --http", name)
	}
	if f.page.Address == "" {
		return nil, nil
	}
	return pageService{s, f.page, false}, nil
}

// A pageService serves the page.
type pageService struct {
	s    cli.Streams
	page webcmd.Flags
	open bool // the browser, too
}

// Serve serves the page until ctx ends.
func (p pageService) Serve(ctx context.Context, a *app.App) error {
	defer a.Busy()()
	err := webcmd.Serve(ctx, p.page, webcmd.Options{
		App: a, Version: cli.Version(), Out: p.s.Out, Err: p.s.Err, Terminal: cli.Terminal(p.s.RawErr), Open: p.open,
	})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}
