// Package tool says what the built-in tools may do. They are in the packages below it: shell runs commands, patch
// changes files, read looks at files.
//
// What a call may do depends on the settings of its conversation: protocol.Settings.Sandbox confines commands and patches,
// Settings.Approval says when the user is asked, Settings.Cwd is where they work. Options add what no conversation can
// allow.
package tool

import "time"

// Options are shared by all tools of a program. The zero value works.
type Options struct {
	// Home is the directory of the program itself, such as that of its file store. Commands cannot reach it, and
	// patches do not change it.
	Home string

	// Guarded are files and directories that commands and patches cannot change without an approval.
	Guarded []string

	// Secrets are files that no tool shows to the model.
	Secrets []string

	// NoEscalation keeps approved commands and patches inside the sandbox.
	NoEscalation bool

	// Environ returns the environment of commands. Nil passes all variables on.
	Environ func() []string

	// Timeout is how long a command may take whose call does not say. Zero is two minutes.
	Timeout time.Duration

	// Grace is the time between SIGTERM and SIGKILL when a command is ended. Zero is a fraction of a second.
	Grace time.Duration
}
