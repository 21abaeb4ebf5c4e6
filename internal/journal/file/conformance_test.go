package file_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
)

func TestFileStore(t *testing.T) {
	journaltest.Run(t, fileHarness(0))
}

// With a small window nearly everything is read back from the file.
func TestFileStoreWithSmallWindow(t *testing.T) {
	journaltest.Run(t, fileHarness(1000))
}

func fileHarness(window int) func(*testing.T, journaltest.Options) journaltest.Harness {
	return func(t *testing.T, o journaltest.Options) journaltest.Harness {
		home, disk := journaltest.Home, journaltest.NewDisk(o)
		s, other := journaltest.OnDisk(home, disk, window), journaltest.OnDisk(home, disk, window)
		return journaltest.Harness{Store: s, Other: other, Crash: func(id string, mode journal.CrashMode, r *rand.Rand) {
			s.Crash(id, mode, r)
			other.Crash(id, mode, r)
		}}
	}
}
