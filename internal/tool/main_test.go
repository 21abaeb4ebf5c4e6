package tool

import (
	"os"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/shim/applypatch"
)

func TestMain(m *testing.M) {
	if proc.IsShim() {
		// Not os.Exit, which takes a second under the race detector.
		syscall.Exit(proc.ShimMain(sandbox.Confiner()))
	}
	if applypatch.IsCommand() {
		syscall.Exit(applypatch.Main())
	}
	os.Exit(m.Run())
}
