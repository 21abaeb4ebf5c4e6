package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// Stream names where output came from.
type Stream = capture.Stream

// The streams of a command. In a pseudo-terminal everything is Stdout.
const (
	Stdout = capture.Stdout
	Stderr = capture.Stderr
)

// Sink takes output in the order in which it arrived. It is called from one
// goroutine at a time, and b is valid only during the call. While it blocks the
// command's output is not read, and Wait does not return.
type Sink func(s Stream, b []byte)

// Winsize is the size of a terminal in characters.
type Winsize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Spec says what to run. Only Argv is needed.
type Spec struct {
	// Argv is the command and its arguments. A name without a slash is looked
	// up in the PATH of Env.
	Argv []string

	// Wrapper is a program, with arguments, that is run in place of the command and
	// is given Argv as its last arguments. It is apart from Argv because Argv is
	// what people are shown.
	Wrapper []string

	// Dir is the working directory; empty means that of this process.
	Dir string

	// Env is the whole environment; nil means that of this process, with PWD
	// set to Dir. A variable FERMATA_COMMAND is added (see tree.Identity).
	Env []string

	// Confine is handed to the function given to ShimMain, in the process that
	// becomes the command, right before it does. Nil means no confinement.
	Confine json.RawMessage

	// UserNamespace starts the process that becomes the command in a user, mount
	// and IPC namespace of its own, where it keeps its ids and where Confine has
	// the right to mount; the command itself does not. It is how an ordinary user
	// gets a confinement that needs mounts. What a command notices of it: sudo and
	// other set-uid programs do not work, and files of other users seem to belong
	// to nobody. Where the system forbids it Start fails.
	UserNamespace bool

	// PIDNamespace runs the command in a PID namespace of its own, with its own
	// /proc, where the system gives one (see PIDNamespaces). It cannot then signal
	// its shim, and the kernel itself ends the tree with the shim, whatever
	// happens. What a command notices of it: it does not see the processes of
	// others, mounts that it makes vanish with it, and an ordinary user's command
	// is also in a user namespace.
	PIDNamespace bool

	// Pty asks for a pseudo-terminal of that size instead of two pipes. Without
	// it, and without Input, standard input is /dev/null.
	Pty *Winsize

	// Input makes standard input a pipe, to which Command.Input writes. It cannot
	// be combined with Pty.
	Input bool

	// Serve, if set, answers processes of the command that call socket.Ask. It is given
	// each connection in a goroutine of its own. The end of the command closes the
	// connection, and Wait returns after Serve has. What arrives is not to be trusted.
	Serve func(*os.File) `json:"-"`

	// Timeout stops the command that long after Release; 0 means never.
	Timeout time.Duration

	// Grace is the time between SIGTERM and SIGKILL, at most half of Bound; 0
	// means 100 ms, negative means none.
	Grace time.Duration

	// Linger is how long processes that the command leaves behind may go on by
	// themselves after its normal end, so that a process substitution can write
	// its last words; 0 means 100 ms, negative means not at all.
	Linger time.Duration

	// Bound is the longest that a stop may take in all; 0 or less means 2 s.
	Bound time.Duration
}

const (
	defaultGrace  = 100 * time.Millisecond
	defaultLinger = 100 * time.Millisecond
	defaultBound  = 2 * time.Second

	// drainLimit bounds the reading of output after the tree is gone, when a
	// process outside it holds the pipe open.
	drainLimit = 100 * time.Millisecond
)

// orDefault returns d, def if d is zero, and zero if d is negative.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

// Result is the end of a command.
type Result struct {
	// ExitCode is -1 when the command did not run or was ended by a signal.
	ExitCode int

	// Signal is the name of the signal that ended the command, or empty.
	Signal string

	// TimedOut is true when Spec.Timeout ended the command, Stopped when Stop or
	// the context did. Both are false when it had ended by itself before.
	TimedOut bool
	Stopped  bool

	// Ended is true when another process ended the command, see End.
	Ended bool

	// Cause is what Stop was given, or the context's cause, when Stopped.
	Cause error

	// Killed counts the processes that ended because we made them, among them
	// the command itself, and background processes it left behind.
	Killed int

	// Duration is the time from Release to the end.
	Duration time.Duration

	// Err says why the command did not run (wrapping the error of the system)
	// or what went wrong around it. An exit code other than 0 is no error.
	Err error
}

var (
	// ErrClosed is returned by Start after Close.
	ErrClosed = errors.New("spawner is closed")

	// ErrNotReleased is in Result.Err of a command that was stopped before it
	// was released: nothing ran.
	ErrNotReleased = errors.New("command was stopped before it ran")

	// ErrLeaseOver is ErrNotReleased because of Spawner.Lease: another machine might have run commands at that moment.
	ErrLeaseOver = fmt.Errorf("%w: the lease of this machine had ended for a moment, because the servers that keep the conversation did not answer in time; nothing ran, so the command can be run again", ErrNotReleased)

	// ErrShimLost is in Result.Err when the supervising process died, for
	// example because the command killed it. The tree was ended all the same.
	ErrShimLost = tree.ErrShimLost

	// ErrSurvivors is in Result.Err when processes of the command could not be
	// ended within the bound.
	ErrSurvivors = tree.ErrSurvivors
)
