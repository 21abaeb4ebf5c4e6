package tree

import (
	"testing"
	"time"
)

// eventually waits until cond holds. The limit is only there to fail.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(10 * time.Minute)
	defer limit.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit.C:
			tb.Fatalf("did not come true: %s", what)
		}
	}
}

func alivePID(pid int) bool {
	p, err := Read(pid)
	return err == nil && !p.Dead()
}
