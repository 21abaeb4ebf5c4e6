package tool

import (
	"os"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
)

func TestMain(m *testing.M) {
	if proc.IsShim() {
		os.Exit(proc.ShimMain(sandbox.Apply))
	}
	os.Exit(m.Run())
}
