//go:build unix

package patch

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// What a patch has staged is synced before its file gets its name. A pipe can be written to but not synced, so that
// it shows whether that is tried.
func TestStagedFileIsSynced(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o644} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		defer to.Close()
		if err := fill(to, []byte("text"), mode, ""); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("mode %v: fill = %v, want the error of a sync", mode, err)
		}
	}
}
