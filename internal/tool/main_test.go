package tool

import (
	"os"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
)

func TestMain(m *testing.M) {
	if proc.IsShim() {
		os.Exit(proc.ShimMain(nil))
	}
	os.Exit(m.Run())
}
