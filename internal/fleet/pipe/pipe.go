// Package pipe makes connections of messages: an ordered stream of bytes in both directions between two
// processes that can reach the same NATS servers.
//
// Messages of NATS arrive in order or not at all. A [Conn] numbers what it sends: if anything is missing it
// fails, and never skips. Each side says from time to time how much it has sent, so that one that is silent, or that no process
// listens for any more, is noticed. What the other side has not read yet is bounded.
//
// Start reading at [Dial] and [Listen].
package pipe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A Message is one of a [Bus].
type Message struct {
	Reply      string // where an answer is expected; empty if none is
	Data       []byte
	NoListener bool // instead: there is no listener where a message of ours was sent to
}

// A Bus sends messages to subjects.
type Bus interface {
	// Publish sends a message. If there is no listener at its subject and reply is not empty, a message
	// that says so may come there.
	Publish(subject, reply string, data []byte) error

	// Subscribe calls f for one message after the other, until the returned function is called.
	Subscribe(subject string, f func(Message)) (func(), error)

	NewInbox() string // a subject that no other client has
	MaxPayload() int  // of a message, in bytes
}

// Options say how soon a silent peer is given up. The zero value works.
type Options struct {
	Silence time.Duration // after so long without a message; a second if 0
}

func (o Options) silence() time.Duration {
	if o.Silence > 0 {
		return o.Silence
	}
	return time.Second
}

// Why a connection ends, or does not come about.
var (
	ErrGone   = errors.New("there is no listener any more")
	ErrSilent = errors.New("the other process does not respond")
	ErrGap    = errors.New("messages were lost")
	ErrFull   = errors.New("too many connections at once")
	errFrame  = errors.New("not a message of a connection")
	errWindow = errors.New("the other process sends more than it may")
)

// The versions of the messages that this program speaks.
const (
	oldestVersion = 1
	newestVersion = 1
)

// A VersionError says that the two sides do not understand each other.
type VersionError struct {
	Theirs, Oldest, Newest int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("version %d of connections over NATS: this fermata speaks %d to %d", e.Theirs, e.Oldest, e.Newest)
}

// window is how many bytes may be under way, or unread, in one direction.
const window = 1 << 20

// What peers may cost of which nothing is known but that they can reach the servers: bytes before they were answered, and
// connections. The rest of maxConns is for those that were answered.
const (
	maxGreeting  = 16 << 10
	maxStrangers = 32
	maxConns     = 128
)

// maxChunk is how many bytes one message has at most.
const maxChunk = 256 << 10

// The kinds of messages.
const (
	kindOpen   = 'o' // the first: may I connect? The number is the newest version, the payload the oldest
	kindAccept = 'a' // the answer: yes. The number is the version, the reply where to send to
	kindRefuse = 'r' // or no. The payload says why
	kindData   = 'd' // bytes. The number counts these messages
	kindCredit = 'c' // the number is how many bytes were read
	kindPing   = 'p' // the number is how many messages of data were sent, the payload how many bytes were read
	kindEnd    = 'e' // the last. The number is how many messages of data were sent
)

// A frame is what a message says.
type frame struct {
	kind    byte
	number  uint64
	payload []byte
}

const headLength = 9

func (f frame) encode() []byte {
	b := make([]byte, headLength, headLength+len(f.payload))
	b[0] = f.kind
	binary.BigEndian.PutUint64(b[1:], f.number)
	return append(b, f.payload...)
}

func decode(b []byte) (frame, error) {
	if len(b) < headLength {
		return frame{}, errFrame
	}
	return frame{b[0], binary.BigEndian.Uint64(b[1:]), b[headLength:]}, nil
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func parseNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errFrame
	}
	return binary.BigEndian.Uint64(b), nil
}
