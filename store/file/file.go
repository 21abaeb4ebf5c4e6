// Package file keeps conversations in files, one for each, as lines of JSON.
package file

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/native"
)

// New returns a store that keeps each conversation in its own file below a directory, which is created when it is
// needed. Other processes may use the same directory at the same time: a conversation is open in one of them, the
// others get a *protocol.LockedError. Every line is durable before an engine reports it.
func New(dir string) engine.Store {
	if dir == "" {
		return native.InvalidStore("the directory of the file store is empty")
	}
	return native.Store(file.New(dir, file.Options{}), nil)
}
