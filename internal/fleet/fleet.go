// Package fleet lets machines that share a store on NATS work together: [Queue] holds turns that some machine
// is to run, a [Worker] takes them and runs them, a [Submission] is one from its client's side.
//
// A turn is started at most once. Its op has a name, and the journal of its conversation, which has one writer, knows
// whether an op of that name was recorded. So work that was taken by a machine which died is given to
// another: if nothing had been recorded it starts the turn, and else it finds it started.
//
// Package pipe below it makes connections between machines.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Work is a turn for some machine to run. Its conversation exists, and no process has it open.
type Work struct {
	Version      int              `json:"version"`
	Conversation p.ConversationID `json:"conversation"`
	Op           p.OpJSON         `json:"op,omitzero"`      // a UserTurn, unless Adopt is set
	Name         string           `json:"name"`             // of the op: by it is known whether it was started
	Client       string           `json:"client,omitempty"` // who submits it, for people
	Dir          string           `json:"dir"`              // to work in, on the machine that runs it
	Git          *git.Source      `json:"git,omitempty"`    // what that machine checks out to work in, instead of Dir
	Reply        string           `json:"reply,omitempty"`  // where refusals are sent; perhaps there is no listener

	// Adopt says that the turn was begun by a machine which has left, and waits, for an approval or a limit: there is no op, and the
	// machine that takes it opens the conversation and waits in its place.
	Adopt bool `json:"adopt,omitempty"`
}

// The versions of work: each is the oldest that knows what it asks for, so that machines of older versions run the rest.
const (
	dirVersion   = 1
	gitVersion   = 2
	adoptVersion = 3
	workVersion  = adoptVersion // the newest
)

// version is the oldest version that can run the work.
func (w Work) version() int {
	switch {
	case w.Adopt:
		return adoptVersion
	case w.Git != nil:
		return gitVersion
	}
	return dirVersion
}

var errWork = errors.New("not a turn to run")

// A VersionError says that work was submitted by another version of the program.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("it was submitted by another version of fermata (version %d of the queue, this is %d)", e.Version, workVersion)
}

func decodeWork(b []byte) (Work, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Version == 0 {
		return Work{}, errWork
	}
	if head.Version > workVersion {
		return Work{}, &VersionError{head.Version}
	}
	var w Work
	if err := json.Unmarshal(b, &w); err != nil {
		return Work{}, fmt.Errorf("%w: %w", errWork, err)
	}
	if _, ok := w.Op.Op.(p.UserTurn); ok == w.Adopt || w.Conversation == "" || w.Name == "" {
		return Work{}, errWork
	}
	return w, nil
}

// A Refusal says why a machine does not run a turn. Another one may, unless it says that it is the last.
type Refusal struct {
	Node string `json:"node,omitempty"` // empty if that is not known
	Why  string `json:"why"`

	Failed  bool `json:"failed,omitempty"`  // it was the last of maxFailures: the turn is on the list of failed work
	Dropped bool `json:"dropped,omitempty"` // an operator has dropped the turn
}

// An UnsuitableError says that a machine cannot run a turn which another one may be able to run: nothing has failed.
type UnsuitableError struct{ Err error }

func (e *UnsuitableError) Error() string { return e.Err.Error() }
func (e *UnsuitableError) Unwrap() error { return e.Err }

var label = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`) })

// CheckLabel says what is wrong with a label.
func CheckLabel(s string) error {
	if !label().MatchString(s) {
		return fmt.Errorf("%q is not a label: use up to 32 letters, digits, - and _", s)
	}
	return nil
}

// TakesPart reports whether a node takes work with a label, or any work if that is empty.
func TakesPart(n nats.Node, label string) bool {
	return n.Turns > 0 && !n.Draining && (label == "" || slices.Contains(n.Labels, label))
}
