//go:build !linux && !darwin

package sandbox

import (
	"encoding/json"
	"runtime"

	"github.com/fermata-agent/fermata/internal/proc"
)

// seatbeltProgram does not exist here.
const seatbeltProgram = ""

// Probe finds out what this machine can do: nothing, on this system.
func Probe() Ability { return Ability{System: runtime.GOOS} }

// Apply is for other systems.
func Apply(json.RawMessage) error { return ErrUnable }

func (p *plan) set(*proc.Spec) error { return ErrUnable }
