package remote

import p "github.com/fermata-agent/fermata/protocol"

// Fresh is what a follower does with each event.
func Fresh() func(p.Event) (p.Event, bool) {
	return (&follower{seen: map[p.ItemID]int64{}}).fresh
}

// Die ends a host as the end of its process would.
func (h *Host) Die() {
	h.listener.Close()
	h.server.Close()
}
