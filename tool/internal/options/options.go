// Package options makes the built-in tools of what a program allows.
package options

import (
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	builtin "github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/tool"
)

// spawner is shared by all tools of the process. What it keeps ready ends with the process.
var spawner = sync.OnceValues(proc.NewSpawner)

// Shell returns what runs commands.
func Shell(o tool.Options) (*builtin.Shell, error) {
	s, err := spawner()
	if err != nil {
		return nil, err
	}
	return &builtin.Shell{
		Spawner: s, Timeout: o.Timeout, Grace: o.Grace, Home: o.Home, Guarded: o.Guarded, Secrets: o.Secrets,
		Environ: o.Environ, Patch: Patch(o), CanAsk: !o.NoEscalation, NoEscalation: o.NoEscalation,
	}, nil
}

// Patch returns what changes files.
func Patch(o tool.Options) *builtin.Patch {
	return &builtin.Patch{Home: o.Home, Guarded: o.Guarded, Secret: secret(o), NoEscalation: o.NoEscalation}
}

// Files returns what looks at files.
func Files(o tool.Options) *builtin.Files { return &builtin.Files{Secret: secret(o)} }

// secret reports which files are not shown: those of the program, those that are named, and the environment of
// processes, in which keys are.
func secret(o tool.Options) func(path string) bool {
	var homes []string
	if o.Home != "" {
		homes = append(homes, o.Home)
	}
	return func(path string) bool {
		return path == "/proc" || strings.HasPrefix(path, "/proc/") || sandbox.OffLimits(homes, path, o.Secrets...)
	}
}
