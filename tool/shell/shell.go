// Package shell has tools that run commands, in the sandbox that the settings of the conversation name. When a turn is
// interrupted, or the program dies, the whole process tree of its commands ends.
//
// Each command is supervised by a process of the program itself, which is started again for that: such a process does
// its work and ends while this package is initialised, before main. The package therefore must be imported by the
// program, not by a plugin.
package shell

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/native"
	_ "github.com/fermata-agent/fermata/internal/shim" // supervises commands
	builtin "github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/tool"
	"github.com/fermata-agent/fermata/tool/internal/options"
)

// New returns the tool shell, which runs a command and waits for its end.
func New(o tool.Options) (engine.Tool, error) {
	s, err := options.Shell(o)
	if err != nil {
		return nil, err
	}
	return native.Tool(s), nil
}

// Sessions returns the tools exec_command and write_stdin: a command that takes long continues in the background, and
// can be written to.
func Sessions(o tool.Options) ([]engine.Tool, error) {
	s, err := options.Shell(o)
	if err != nil {
		return nil, err
	}
	return []engine.Tool{native.Tool(&builtin.Exec{Shell: s}), native.Tool(builtin.WriteStdin{})}, nil
}

// Grep returns the tool grep, which searches files.
func Grep(o tool.Options) (engine.Tool, error) {
	s, err := options.Shell(o)
	if err != nil {
		return nil, err
	}
	return native.Tool(&builtin.Grep{Files: options.Files(o), Shell: s}), nil
}
