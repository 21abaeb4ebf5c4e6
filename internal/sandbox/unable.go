//go:build !linux && !darwin

package sandbox

import (
	"runtime"

	"github.com/fermata-agent/fermata/internal/proc"
)

// seatbeltProgram does not exist here.
const seatbeltProgram = ""

// Probe finds out what this machine can do: nothing, on this system.
func Probe() Ability { return Ability{System: runtime.GOOS} }

// Confiner carries no confinement out here: New makes none.
func Confiner() proc.Confiner { return proc.Confiner{} }

func (p *plan) set(*proc.Spec) error { return ErrUnable }
