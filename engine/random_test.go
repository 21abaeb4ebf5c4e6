package engine_test

import (
	"flag"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/randomtest"
)

var scenarios = flag.Int("scenarios", longtest.Default(1000, 40), "how many random scenarios to run on each kind of journal")

const stopBound = 1500 * time.Millisecond

func TestRandomInterleavingsInMemory(t *testing.T) {
	randomtest.Run(t, *scenarios, func(_ *testing.T, o randomtest.Options) randomtest.Disk {
		s := journal.NewMemoryStore(o)
		return randomtest.Disk{Store: s, Crash: s.Crash}
	})
}

func TestRandomInterleavingsInFiles(t *testing.T) {
	randomtest.Run(t, *scenarios, func(t *testing.T, o randomtest.Options) randomtest.Disk {
		s := journaltest.NewFileStore(t, o)
		return randomtest.Disk{Store: s, Crash: s.Crash}
	})
}
