package journal_test

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
)

func TestMemoryStore(t *testing.T) {
	journaltest.Run(t, func(t *testing.T, o journaltest.Options) journaltest.Harness {
		s := journal.NewMemoryStore(o)
		return journaltest.Harness{Store: s, Other: s, Crash: s.Crash}
	})
}
