package composer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Somebody shortens the history while we wait to append to it: what we add goes
// to the new file, not to the one that is gone.
func TestAppendWaitsForWhoeverShortens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h := NewHistoryFile(path)
	add(t, h, "old", "new")
	f, err := h.open() // and with it the lock
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- NewHistoryFile(path).Add("added meanwhile") }()
	finished := waitUntilBlocked(t, f, done)

	h.maxBytes = 60 // room for one line in its half
	if err := h.shorten(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if finished {
		t.Error("the entry was added under somebody else's lock")
	} else if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new", "added meanwhile"}, load(t, h)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// waitUntilBlocked returns when somebody waits for the lock of a file. It reports
// whether done was there first.
func waitUntilBlocked(t *testing.T, f *os.File, done <-chan error) bool {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Skipf("who waits for a lock cannot be seen here: %v", err)
		}
		for line := range strings.Lines(string(locks)) {
			if strings.Contains(line, "->") && strings.Contains(line, inode) {
				return false
			}
		}
		select {
		case <-done:
			return true
		case <-t.Context().Done():
			t.Fatal("nobody waits for the lock")
		case <-tick.C:
		}
	}
}
