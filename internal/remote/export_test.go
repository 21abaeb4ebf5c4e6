package remote

// Die ends a host as the end of its process would.
func (h *Host) Die() {
	h.listener.Close()
	h.server.Close()
}
