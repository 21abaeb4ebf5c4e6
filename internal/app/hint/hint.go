// Package hint has errors for people: what failed, and what to do about it.
package hint

import (
	"fmt"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// An Error is one for people.
type Error struct {
	Err   error
	Hint  string // what to do about it; empty if that is not known
	Usage bool   // the command line is wrong
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error of the command line.
func Usagef(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Usage: true}
}

// Returned names messages of a conversation that were not delivered, and says what can be done with them. It is
// empty if there are none. Those that were deleted, and those of a conversation without an id, are only named.
func Returned(id p.ConversationID, list []p.ReturnedInput) string {
	var lines []string
	kept := false
	for _, in := range list {
		lines = append(lines, "not delivered: "+p.Written(in.Content))
		kept = kept || !in.Deleted && id != ""
	}
	if kept {
		lines = append(lines, fmt.Sprintf("to send it: fermata exec resume %[1]s --returned\nto drop it: fermata returned %[1]s --drop", id))
	}
	return strings.Join(lines, "\n")
}
