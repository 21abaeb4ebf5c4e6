package provision

import (
	"fmt"
	"sync"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// A Room is how full the stream is. When it has as many bytes as it may have, turns are ended and none is begun; what
// that needs has a reserve.
type Room struct {
	Wake chan struct{} // room for one: this process has written much

	mu      sync.Mutex
	limit   Limit // guarded by mu, as what follows
	used    int64 // when it was last looked at
	written int64 // by this process since
}

// NewRoom returns one of which nothing is known.
func NewRoom() *Room { return &Room{Wake: make(chan struct{}, 1)} }

// Note notes what a look at the stream has found.
func (r *Room) Note(limit Limit, used uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit, r.used, r.written = limit, int64(used), 0
}

// Add counts what this process writes. Several processes may write at once: together they must not use up the reserve
// before one of them looks.
func (r *Room) Add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written += int64(n)
	if r.limit.Max > 0 && r.written > r.limit.Reserve/8 {
		select {
		case r.Wake <- struct{}{}:
		default:
		}
	}
}

// Full returns a *refusal.FullError if there is no room.
func (r *Room) Full() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit.Max == 0 || r.used+r.written < r.limit.Max {
		return nil
	}
	return &refusal.FullError{Err: fmt.Errorf("%d of %d bytes are used", r.used+r.written, r.limit.Max)}
}

// IsLimited reports whether the stream has a limit.
func (r *Room) IsLimited() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit.Max > 0
}
