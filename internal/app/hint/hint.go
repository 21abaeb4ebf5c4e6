// Package hint has errors for people: what failed, and what to do about it.
package hint

import "fmt"

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
