package remote

import (
	"context"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// Use calls f with the engine that a conversation is open in.
func (c *Router) Use(ctx context.Context, f func(engine.Engine) error) error {
	return c.use(ctx, "", f)
}

// TryOnce has owners that cannot be reached tried once and not for a while.
func (c *Router) TryOnce() { c.wait = 0 }

// Fresh is what a follower does with each event.
func Fresh() func(p.Event) (p.Event, bool) {
	return (&follower{seen: map[p.ItemID]int64{}}).fresh
}

// Die ends a host as the end of its process would.
func (h *Host) Die() {
	h.listener.Close()
	h.server.Close()
}

// OnChange has f called when clients come and go.
func (s *Server) OnChange(f func()) { s.changed = f }

// The bounds of those that have not said hello, and of those that have.
const (
	MaxStrangers  = maxStrangers
	StrangerLine  = strangerLine
	StrangerLines = strangerLines

	MaxClients = maxClients
)
