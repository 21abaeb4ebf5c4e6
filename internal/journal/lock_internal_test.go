package journal

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// The file is removed and made anew all the time; there is never more than one
// owner all the same.
func TestLockHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var owners, taken atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for taken.Load() < 500 {
				l, err := lock(path)
				var locked *LockedError
				if errors.As(err, &locked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners", n)
				}
				taken.Add(1)
				owners.Add(-1)
				l.release()
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
}

func TestAbandonedLockIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	l.abandon()
	if _, err := os.Stat(path); err != nil {
		t.Error("a dead owner removes nothing")
	}
	l, err = lock(path)
	if err != nil {
		t.Fatal(err)
	}
	l.release()
}
