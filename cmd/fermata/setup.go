package main

import (
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/internal/app"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// setupOptions are what the commands that set fermata up need.
func setupOptions(s cli.Streams) setupcmd.Options {
	return setupcmd.Options{
		In: s.In, Out: s.Out, Err: s.Err, Version: cli.Version(),
		Load: func(dir string) (app.Loaded, error) { return (&cli.RunFlags{Dir: dir}).Load(s) },
		LoadFlags: func(fs *pflag.FlagSet) func() (app.Loaded, error) {
			var f cli.RunFlags
			f.Register(fs)
			return func() (app.Loaded, error) { return f.Load(s) }
		},
	}
}
