// Package setupcmd holds the commands that show and change how fermata is set up: keys, trust,
// permissions, models, the configuration and what the machine supports. They are here so that package
// main stays small; what they do is in package app.
package setupcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
)

// Options are what the commands need of package main.
type Options struct {
	In       io.Reader
	Out, Err io.Writer // answers, and everything else
	Version  string

	Load      func(dir string) (app.Loaded, error)            // the configuration for a directory; empty is the current one
	LoadFlags func(*pflag.FlagSet) func() (app.Loaded, error) // adds the flags that choose a configuration, and returns what reads it
}

// Commands are the commands.
func Commands(o Options) []*cobra.Command {
	return []*cobra.Command{
		loginCommand(o), logoutCommand(o), trustCommand(o), permissionsCommand(o), configCommand(o), modelsCommand(o), doctorCommand(o),
	}
}

func (o Options) warn(w config.Warning) { fmt.Fprintf(o.Err, "fermata: %s: %v\n", w.Level(), w) }

func (o Options) reportWaiting() {
	fmt.Fprintln(o.Err, "fermata: reading from stdin until it is closed; use </dev/null if there is no input")
}
