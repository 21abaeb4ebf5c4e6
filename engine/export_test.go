package engine

// Counts returns how many conversations the engine has open or is opening, and
// how many released ones are followed.
func (l *Local) Counts() (open, watched int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots), len(l.watches)
}
