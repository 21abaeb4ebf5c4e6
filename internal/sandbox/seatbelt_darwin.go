package sandbox

import (
	"os"
	"sync"

	"github.com/fermata-agent/fermata/internal/proc"
)

// This file was compiled but never run: no Mac was at hand.

const seatbeltProgram = "/usr/bin/sandbox-exec"

// Probe finds out what this machine can do.
func Probe() Ability { return probe() }

var probe = sync.OnceValue(func() Ability {
	info, err := os.Stat(seatbeltProgram)
	return Ability{System: "darwin", Seatbelt: err == nil && info.Mode().IsRegular()}
})

// Confiner has nothing to do: the command is started by sandbox-exec (see set).
func Confiner() proc.Confiner { return proc.Confiner{} }

// set lets sandbox-exec run the command. It is always the one of the
// system: the PATH may lead to another.
func (p *plan) set(spec *proc.Spec) error {
	profile, parameters := p.seatbelt()
	argv := append([]string{seatbeltProgram, "-p", profile}, parameters...)
	spec.Wrapper = append(argv, "--")
	return nil
}
