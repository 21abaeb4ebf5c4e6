// Package longtest keeps tests that take long, or need more than Go, out of a plain go test ./...
// They run where FERMATA_LONG_TESTS is set, which .ci/run does.
package longtest

import (
	"errors"
	"os"
	"testing"
)

// Variable is the environment variable that is set where long tests run.
const Variable = "FERMATA_LONG_TESTS"

// ErrOff is why a long test does not run.
var ErrOff = errors.New("it is a long test: set " + Variable + "=1 to run it")

// On reports whether long tests run.
func On() bool { return os.Getenv(Variable) != "" }

// Only skips a test unless long tests run.
func Only(t testing.TB) {
	t.Helper()
	if testing.Short() || !On() {
		t.Skip(ErrOff)
	}
}

// Default is the default of a flag that says how often something is repeated: all times where long tests run,
// else a part of that.
func Default(all, part int) int {
	if On() {
		return all
	}
	return min(all, part)
}
