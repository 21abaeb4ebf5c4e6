// Package shim makes a process that was started to run a command do that and
// nothing else. It is imported for its effect, by main. A process that was started as
// apply_patch, by a command, passes a patch on to fermata.
//
// The work is done while the program is initialised: Go initialises packages in the
// order of their needs and names, so that most of the program's other packages
// (the terminal UI's, the model adapters') are not initialised before. Every
// command starts our binary twice, and doing it in main would cost each of them about a
// millisecond more.
package shim

import (
	"os"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/shim/applypatch"
)

func init() {
	if proc.IsShim() {
		os.Exit(proc.ShimMain(sandbox.Confiner()))
	}
	if applypatch.IsCommand() {
		os.Exit(applypatch.Main())
	}
}
