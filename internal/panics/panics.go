// Package panics keeps a defect that shows in one place from ending everything that the process runs: whoever
// serves a request, follows a conversation or owns one recovers, logs the trace with a [Log], and passes an
// error on to those who wait.
//
// It is a package because every layer that starts goroutines uses it.
package panics

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
)

// A Log keeps the trace of a panic. nil keeps none. It may be called from any goroutine.
type Log func(value any, stack []byte)

// An Error is what remains of a panic for those who wait.
type Error struct{ Value any }

func (e *Error) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Caught logs what recover returned and returns it as an error, nil if there was no panic. A deferred function calls it:
//
//	defer func() {
//		if err := log.Caught(recover()); err != nil { … }
//	}()
func (l Log) Caught(value any) error {
	if value == nil {
		return nil
	}
	if l != nil {
		l(value, debug.Stack())
	}
	return &Error{value}
}

// Run calls fn and returns its panic, if there is one.
func (l Log) Run(fn func()) (err error) {
	defer func() { err = l.Caught(recover()) }()
	fn()
	return nil
}

// File is the name of the file in the home in which traces are kept.
const File = "panics.log"

// maxFile is how large the file may be before it is begun anew: a defect that shows over and over must not fill the disk.
const maxFile = 4 << 20

// ToFile returns a Log that adds traces to the file in the home. They are for bug reports.
func ToFile(home string) Log {
	name := filepath.Join(home, File)
	return func(value any, stack []byte) {
		mode := os.O_APPEND
		if info, err := os.Stat(name); err == nil && info.Size() > maxFile {
			mode = os.O_TRUNC
		}
		f, err := regular.OpenFile(name, mode|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return // those who wait have the error
		}
		defer f.Close()
		fmt.Fprintf(f, "%s %v\n%s\n", time.Now().UTC().Format(time.RFC3339), value, stack)
	}
}
