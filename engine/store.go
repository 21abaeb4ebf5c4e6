package engine

import "github.com/fermata-agent/fermata/internal/journal"

// A Store is where conversations are kept: that of package store/file, store/memory or store/nats. Engines of one
// process may share one.
type Store interface {
	// Close releases what the store holds outside of this process, such as connections. Engines that use it are
	// shut down first.
	Close() error
}

// storeOf is a store in the form that conversations use.
func storeOf(s Store) journal.Store {
	js, _ := native[journal.Store](s)
	return js
}
