package main

import (
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/internal/app"
)

// setupOptions are what the commands that set fermata up need.
func setupOptions(s streams) setupcmd.Options {
	return setupcmd.Options{
		In: s.in, Out: s.out, Err: s.err, Version: version(),
		Load: func(dir string) (app.Loaded, error) { return (&runFlags{dir: dir}).load(s) },
		LoadFlags: func(fs *pflag.FlagSet) func() (app.Loaded, error) {
			var f runFlags
			f.register(fs)
			return func() (app.Loaded, error) { return f.load(s) }
		},
	}
}
