package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/proc"
)

func TestMain(m *testing.M) {
	if proc.IsShim() {
		// Not os.Exit, which takes a second under the race detector.
		syscall.Exit(proc.ShimMain(Confiner()))
	}
	if name := os.Getenv(toolVariable); name != "" {
		syscall.Exit(toolMain(name))
	}
	os.Exit(m.Run())
}

// toolVariable makes the test binary one of the tools.
const toolVariable = "FERMATA_SANDBOX_TOOL"

// toolMain runs a tool. It ends with 0 if that did what it was meant to.
func toolMain(name string) int {
	tool, ok := tools[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no tool", name)
		return 2
	}
	if err := tool(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
