//go:build race

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
)

// With -race the binary has the race detector, too, and what it finds fails the run.
func init() {
	buildFlags = []string{"-race"}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		panic(err)
	}
	os.Setenv("GORACE", "log_path="+filepath.Join(dir, "race")) // of the processes: this one has read it before
	races = func() int {
		defer os.RemoveAll(dir)
		found, _ := filepath.Glob(filepath.Join(dir, "race*"))
		for _, name := range found {
			text, _ := os.ReadFile(name)
			fmt.Printf("%s\n", text)
		}
		return len(found)
	}
}
