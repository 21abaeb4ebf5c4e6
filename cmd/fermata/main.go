// Command fermata is a coding agent that can be stopped at any instant and
// picked up again with nothing lost. There is one file for each subcommand;
// wire.go puts the parts together.
package main

import (
	"context"
	"os"

	_ "github.com/fermata-agent/fermata/internal/shim" // a process that only runs a command ends in there
)

func main() { os.Exit(run(context.Background(), os.Args[1:], stdio())) }
