package applypatch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Installing at the same time many times leaves the links, and never shows another entry beside them: a sandbox that is being made
// for another command looks there.
func TestInstallShowsOnlyTheCommands(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "commands"), 0o700); err != nil {
		t.Fatal(err)
	}
	var all, looking sync.WaitGroup
	stop := make(chan struct{})
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			list, _ := os.ReadDir(filepath.Join(home, "commands"))
			for _, e := range list {
				if !slices.Contains(names, e.Name()) {
					t.Errorf("%s is there", e.Name())
					return
				}
			}
		}
	})
	for range 8 {
		all.Go(func() {
			for range 20 {
				dir, err := Install(home)
				if err != nil {
					t.Errorf("install: %v", err)
					return
				}
				_ = os.Remove(filepath.Join(dir, names[0])) // so that it is made again
			}
		})
	}
	all.Wait()
	close(stop)
	looking.Wait()
	if _, err := Install(home); err != nil {
		t.Fatal(err)
	}
	if self, err := os.Readlink(filepath.Join(home, "commands", names[0])); err != nil || !strings.HasSuffix(self, ".test") {
		t.Errorf("the command leads to %s, %v", self, err)
	}
	if left, _ := os.ReadDir(filepath.Join(home, "tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
