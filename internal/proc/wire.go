package proc

import (
	"encoding/json"
	"errors"
	"syscall"
	"time"
)

// What is said on the pipes, as a sequence of JSON values:
//
//	fermata → shim   order, release, release with a new Until ..., end of file = stop
//	shim → stage     stageOrder, release, end of file = leave
//	stage → shim     a file to serve (see Confiner); failure, or end of file = it became the command
//	shim → fermata   report ..., end of file = the shim is dead

// order tells the shim what to do. The part for the stage is passed on unread.
type order struct {
	Stage  json.RawMessage `json:"stage"`
	Grace  time.Duration   `json:"grace"`
	Linger time.Duration   `json:"linger"`
	Bound  time.Duration   `json:"bound"`
	Until  time.Duration   `json:"until,omitempty"` // see Spawner.Lease
}

// stageOrder is the command. Arguments and environment are bytes, because JSON
// strings would change what is not UTF-8.
type stageOrder struct {
	Argv    [][]byte        `json:"argv"`
	Dir     []byte          `json:"dir"`
	Env     [][]byte        `json:"env"`
	Confine json.RawMessage `json:"confine,omitempty"`
	TTY     string          `json:"tty,omitempty"` // path of the terminal
	Mark    uint64          `json:"mark,omitempty"`
	Socket  bool            `json:"socket,omitempty"` // the command gets it, see Spec.Serve
}

// release lets the command begin.
type release struct {
	Release bool          `json:"release"`
	Until   time.Duration `json:"until,omitempty"` // see Spawner.Lease; only to the shim
}

// report is one message of the shim; exactly one member is set. They come in
// this order, and any of them may be the last if the shim is killed.
type report struct {
	Hello  *hello      `json:"hello,omitempty"`
	Failed *failure    `json:"failed,omitempty"`
	Exited *exitStatus `json:"exited,omitempty"`
	Ending *ending     `json:"ending,omitempty"` // repeated as more processes are found
	Gone   *aftermath  `json:"gone,omitempty"`
	Idle   *struct{}   `json:"idle,omitempty"` // stopped before release
}

// hello says that the shim is ready for an order.
type hello struct {
	Leader int    `json:"leader"`
	Cgroup string `json:"cgroup,omitempty"`
}

// exitStatus is how the command itself ended.
type exitStatus struct {
	Code   int `json:"code"` // -1 when ended by a signal
	Signal int `json:"signal,omitempty"`
}

// ending says, before it is done, how many processes are going to be ended. It
// counts when the shim is given up before it could say what became of the tree.
type ending struct {
	Found int `json:"found"`
}

// aftermath is what became of the tree.
type aftermath struct {
	Killed int  `json:"killed"`
	Left   int  `json:"left,omitempty"`
	Asked  bool `json:"asked,omitempty"` // by End, while the command ran
}

// failure says why the command could not be started.
type failure struct {
	Text  string        `json:"text"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

// failureOf makes err fit for the wire; the system's error number survives.
func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	_ = errors.As(err, &f.Errno) // stays 0 when there is no number
	return f
}

// startError is a failure that arrived.
type startError failure

// Error tells what could not be done.
func (e *startError) Error() string { return "start command: " + e.Text }

// Unwrap returns the system's error number, if there is one, so that callers can
// ask errors.Is(err, fs.ErrNotExist) across the process boundary.
func (e *startError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}
