package patch

import (
	"errors"
	"fmt"
	"strings"
)

// ChangedError is returned by Apply when a file is no longer what it was when
// the plan was made. Nothing has been applied.
type ChangedError struct {
	Path string // the file that changed
	What string // in which way, as the end of a sentence about the file
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s %s since the patch was checked; nothing was applied", e.Path, e.What)
}

// ConflictError is returned by Recover when another program wrote to files after
// the crash. Their version stays; all other files were brought to one side.
type ConflictError struct {
	Paths []string // the files left as they were found
}

func (e *ConflictError) Error() string {
	return "left alone because they changed after the patch was cut short: " + strings.Join(e.Paths, ", ")
}

// IncompleteError is returned when a patch could be brought neither to its end
// nor back. Recover with the same record will do one of the two once the cause
// is gone.
type IncompleteError struct {
	Err error // what went wrong first
}

func (e *IncompleteError) Error() string {
	if errors.Is(e.Err, errSettled) {
		return e.Err.Error()
	}
	return fmt.Sprintf("patch cut short, recovery has to settle it: %v", e.Err)
}

// Unwrap returns what went wrong first.
func (e *IncompleteError) Unwrap() error { return e.Err }
