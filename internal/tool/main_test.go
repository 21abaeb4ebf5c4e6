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
	os.Exit(run(m))
}

// run runs the tests with a home of their own, so that login shells and git do not read that of whoever runs them.
func run(m *testing.M) int {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	if err := os.Setenv("HOME", home); err != nil {
		panic(err)
	}
	code := m.Run()
	if sp, err := spawner(); err == nil {
		sp.Close()
	}
	return code
}
