// Command fermata is a coding agent that can be stopped at any instant and
// picked up again with nothing lost. There is one file for each subcommand;
// wire.go puts the parts together.
package main

import (
	"context"
	"os"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
)

func main() {
	if proc.IsShim() { // before any other work: this process only runs a command
		os.Exit(shim())
	}
	os.Exit(run(context.Background(), os.Args[1:], stdio()))
}

// shim supervises one command, confined if it is to be.
func shim() int { return proc.ShimMain(sandbox.Apply) }
