// Package memory keeps conversations for as long as the process lives.
package memory

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/native"
)

// New returns an empty store in memory. Engines that share it see the same conversations.
func New() engine.Store {
	return native.Store(journal.NewMemoryStore(journal.MemoryOptions{}), nil)
}
