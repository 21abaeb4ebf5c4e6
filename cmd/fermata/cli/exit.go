package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// The exit codes. They are part of what scripts may rely on.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitWaiting     = 3 // for an approval, or for a limit of the service
	ExitRefused     = 4 // the turn completed, but something was refused and no client could be asked
	ExitUnknown     = 5 // what became of a turn of a fleet, or of a message that send waits for, is not known
	ExitReturned    = 6 // send --wait: the message was not delivered, and is returned
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// ExitStdoutClosed is the exit code of a program that SIGPIPE has ended.
var ExitStdoutClosed = SignalCode(unix.SIGPIPE)

// ExitCodes is what the help says about them.
const ExitCodes = "Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 waiting for approval or a limit, 4 completed but something was refused, " +
	"5 (--fleet) the turn may have been submitted, 129 interrupted by SIGHUP, 130 by SIGINT, 143 by SIGTERM, 141 stdout was closed."

// An ExitError ends the program with a code. Without Err nothing is printed:
// everything has been printed already.
type ExitError struct {
	Code int
	Err  error
	Hint string
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error of the command line.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Args is one of cobra's checks, with our exit code.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if check(cmd, a) != nil {
			return Usagef("%s: wrong number of arguments: %d; usage: %s", cmd.Name(), len(a), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}
