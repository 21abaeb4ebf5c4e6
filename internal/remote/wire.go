// Package remote is the engine of another process: [Server] lets other processes use
// an engine over a connection, and [Engine] is an engine that does so.
//
// What goes over the wire is protocol's own JSON in lines of JSON-RPC ([jsonrpc]). The first
// request is "hello", in which both sides agree on a version. Events are pulled: a client asks
// for the next ones of a stream, so that one who does not read costs its owner a few hundred events and
// delays no other client. Errors keep their meaning for errors.Is and errors.As.
//
// [Listen] and [Dial] connect processes of one user by a socket. Start reading at [Engine].
package remote

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// The versions of the wire that this program speaks.
const (
	oldestVersion = 1
	newestVersion = 1
)

// cancelMethod is the notification that cancels a request.
const cancelMethod = "cancel"

// leavingMethod is the notification of an owner that is about to end in good order.
const leavingMethod = "leaving"

// hello is what a client says first.
type hello struct {
	Oldest  int    `json:"oldest"` // the versions that it speaks
	Newest  int    `json:"newest"`
	Client  string `json:"client,omitempty"`  // its name, for people
	Program string `json:"program,omitempty"` // the version of its program

	Brings json.RawMessage `json:"brings,omitempty"` // what the turns that it starts are run with
	Looks  bool            `json:"looks,omitempty"`  // it only looks what there is: it is no reason to keep running
}

// welcome is the answer to it.
type welcome struct {
	Version int    `json:"version"` // the one to be spoken
	PID     int    `json:"pid"`
	Program string `json:"program,omitempty"`
}

// agree returns the newest version that both sides speak.
func agree(h hello) (int, error) {
	version := min(h.Newest, newestVersion)
	if version < max(h.Oldest, oldestVersion) {
		return 0, &VersionError{Oldest: oldestVersion, Newest: newestVersion, Theirs: h.Newest}
	}
	return version, nil
}

// A VersionError says that two versions of the program do not understand each
// other.
type VersionError struct {
	Oldest int `json:"oldest"` // what the owner speaks
	Newest int `json:"newest"`
	Theirs int `json:"theirs"` // what the client speaks
}

func (e *VersionError) Error() string {
	older := "this fermata"
	if e.Theirs > e.Newest {
		older = "the process that has the conversation open"
	}
	return fmt.Sprintf("%s is too old to join (versions %d and %d to %d of the protocol): use one version of fermata for both",
		older, e.Theirs, e.Oldest, e.Newest)
}

// What is asked, and what is answered.
type (
	about struct {
		ID p.ConversationID `json:"id"`
	}
	createParams struct {
		Settings p.Settings       `json:"settings"`
		ID       p.ConversationID `json:"id,omitempty"` // see engine.WithNewID
	}
	submitParams struct {
		ID     p.ConversationID `json:"id"`
		Op     p.OpJSON         `json:"op"`
		Name   string           `json:"name,omitempty"`   // the client's name of the op
		Client string           `json:"client,omitempty"` // if it is not that of hello
	}
	forkParams struct {
		ID   p.ConversationID `json:"id"`
		UpTo p.Seq            `json:"up_to,omitempty"`
		Fork p.ConversationID `json:"fork,omitempty"` // see engine.WithNewID
	}
	listParams struct {
		Options engine.ListOptions `json:"options"`
	}
	attachParams struct {
		ID     p.ConversationID `json:"id"`
		After  p.Cursor         `json:"after,omitempty"`
		Stream int64            `json:"stream"` // the client's number for it
	}
	streamParams struct {
		Stream int64 `json:"stream"`
	}
	nothing struct{}

	// batch is what comes next in a stream.
	batch struct {
		Events []json.RawMessage `json:"events,omitempty"`
		Live   *int              `json:"live,omitempty"`  // so many events came before the past ended
		Error  *wireError        `json:"error,omitempty"` // after the events; nothing comes after it
	}
)
