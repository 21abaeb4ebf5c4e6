package disk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/protocol"
)

// The file is removed and made anew all the time; there is never more than one
// owner all the same.
func TestLockHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	times := int32(longtest.Default(600, 200))
	var owners, taken atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for taken.Load() < times {
				l, err := TakeLock(OS{}, path, protocol.Self(""))
				var locked *journal.LockedError
				if errors.As(err, &locked) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners", n)
				}
				for range taken.Add(1) % 50 {
					runtime.Gosched() // long enough for somebody to come in who should not
				}
				if n := owners.Add(-1); n != 0 {
					t.Errorf("%d other owners", n)
				}
				l.Release()
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
}

// Who opened the file before the owner removed it has nothing.
func TestLockOnRemovedFileIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TakeLock(OS{}, path, protocol.Self(""))
	if err != nil {
		t.Fatal(err)
	}
	late, err := OS{}.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	var locked *journal.LockedError
	if l, err := lockOpened(OS{}, late, path, protocol.Self("")); l != nil || !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("while it is locked: %v, %v", l, err)
	}
	first.Release()
	if l, err := lockOpened(OS{}, late, path, protocol.Self("")); l != nil || err != nil {
		t.Errorf("after it was removed: %v, %v", l, err)
	}
	second, err := TakeLock(OS{}, path, protocol.Self(""))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := lockOpened(OS{}, late, path, protocol.Self("")); l != nil || err != nil {
		t.Errorf("after there is another: %v, %v", l, err)
	}
	second.Release()
}

func TestAbandonedLockIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(OS{}, path, protocol.Self(""))
	if err != nil {
		t.Fatal(err)
	}
	l.Abandon()
	if _, err := os.Stat(path); err != nil {
		t.Error("a dead owner removes nothing")
	}
	l, err = TakeLock(OS{}, path, protocol.Self(""))
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
}
