package tree

import (
	"errors"
	"strings"
	"syscall"
)

var (
	// ErrSurvivors says that processes could not be ended within the time allowed.
	ErrSurvivors = errors.New("processes could not be ended")

	// ErrShimLost says that the supervising process died.
	ErrShimLost = errors.New("supervisor of the command was killed")
)

// Identity names a started shim for good: it can be stored, and given to Reclaim
// by another process after a crash. A process number alone would not do, since
// numbers are used again.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // start time in clock ticks after boot
	Boot  string `json:"boot"`  // boot id of the kernel and id of the PID namespace

	// Leader is the process that becomes the command, which leads its own
	// session. Zero when the command has a PID namespace of its own, and when there is no
	// such process before the release, because nothing confines the command.
	Leader      int    `json:"leader,omitempty"`
	LeaderStart uint64 `json:"leader_start,omitempty"`

	// Token is part of the variable FERMATA_COMMAND in the command's
	// environment.
	Token string `json:"token"`

	// Mark is the command's limit of file locks, a number drawn for it. The kernel
	// has no use for that limit and hands it on to every descendant, whatever
	// becomes of environment, session and parents. Zero means none.
	Mark uint64 `json:"mark,omitempty"`

	// Cgroup is the directory of the command's control group, if it has one.
	Cgroup string `json:"cgroup,omitempty"`
}

// TokenVariable is the environment variable that marks the processes of a
// command. Commands of a fermata that is itself a command carry the tokens of
// both, separated by commas.
const TokenVariable = "FERMATA_COMMAND"

// EndSignal asks a shim to end its tree: it is how another process than its
// fermata does so, see End.
const EndSignal = syscall.SIGUSR2

// hasToken looks for token in a list.
func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t == token {
			return true
		}
	}
	return false
}
