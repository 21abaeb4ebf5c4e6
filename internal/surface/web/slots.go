package web

import (
	"sync"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// slots are given to sessions: so many in all, to one session, and to those that can only read, so that the owner of the
// conversations always has room.
type slots struct {
	most, perSession, readers int

	mu      sync.Mutex
	taken   int            // guarded by mu
	reading int            // by sessions that can only read; guarded by mu
	by      map[string]int // by session; guarded by mu
}

// take takes a slot if there is one for the session.
func (s *slots) take(x access.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.most || s.by[x.ID] >= s.perSession || x.ReadOnly && s.reading >= s.readers {
		return false
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.taken++
	s.by[x.ID]++
	if x.ReadOnly {
		s.reading++
	}
	return true
}

// release gives a slot back.
func (s *slots) release(x access.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if x.ReadOnly {
		s.reading--
	}
	if s.by[x.ID]--; s.by[x.ID] == 0 {
		delete(s.by, x.ID)
	}
}
