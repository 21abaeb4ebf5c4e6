package proof

import (
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"time"
)

// window is how far the time of a claim may be from the server's clock.
const window = time.Minute

// What is wrong with a claim that is properly signed. The page asks the server again who it is and signs another one.
var (
	ErrNonce  = errors.New("the proof is for another process of the server")
	ErrTime   = errors.New("the time of the proof is not that of the server")
	ErrReplay = errors.New("the proof was used before")
)

// A Fresh takes each claim once, and only those for this process.
type Fresh struct {
	Nonce string

	mu   sync.Mutex
	seen map[string]time.Time // when ids were used; guarded by mu
	look time.Time            // when old ones were last dropped; guarded by mu
}

// NewFresh makes one for a process.
func NewFresh() *Fresh { return &Fresh{Nonce: rand.Text(), seen: map[string]time.Time{}} }

// Check reports whether a claim is for this process and of this time. Nothing is remembered of it.
func (f *Fresh) Check(c Claim, now time.Time) error {
	if c.Nonce != f.Nonce {
		return ErrNonce
	}
	if d := now.Sub(time.Unix(c.Time, 0)); d > window || d < -window {
		return ErrTime
	}
	return nil
}

// Take takes a claim, whose signature has been checked: only who has a session can have ids remembered.
func (f *Fresh) Take(c Claim, now time.Time) error {
	if err := f.Check(c, now); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := c.Session + " " + c.ID
	if _, used := f.seen[id]; used {
		return ErrReplay
	}
	if now.Sub(f.look) > window { // an id that is so old is refused for its time
		maps.DeleteFunc(f.seen, func(_ string, at time.Time) bool { return now.Sub(at) > 2*window })
		f.look = now
	}
	f.seen[id] = now
	return nil
}
