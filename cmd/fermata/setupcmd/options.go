package setupcmd

import (
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
)

// For returns what the commands that set fermata up need.
func For(s cli.Streams) Options {
	return Options{
		In: s.In, Out: s.Out, Err: s.Err, Version: cli.Version(),
		Load: func(dir string) (app.Loaded, error) { return (&cli.RunFlags{Dir: dir}).Load(s) },
		LoadFlags: func(fs *pflag.FlagSet) func() (app.Loaded, error) {
			var f cli.RunFlags
			f.Register(fs)
			return func() (app.Loaded, error) { return f.Load(s) }
		},
	}
}
