// Command fermata is a coding agent that can be stopped at any instant and
// picked up again with nothing lost. It holds the root command; the others are in the packages below, one file for each
// subcommand; how turns are run is in package app.
package main

import (
	"context"
	"os"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	_ "github.com/fermata-agent/fermata/internal/shim" // a process that only runs a command ends in there
)

func main() {
	cli.FollowLauncher(os.Stderr)
	os.Exit(run(context.Background(), os.Args[1:], cli.Stdio()))
}
