package journal

import (
	"context"
	"errors"
	"time"
)

// How long, and how often, Open asks for a conversation that another process has.
const (
	lockWait = 3 * time.Second
	lockPoll = 20 * time.Millisecond
)

// WaitForLock calls try until it returns something else than a *LockedError, or
// the wait is over.
func WaitForLock(ctx context.Context, try func() error) error {
	deadline := time.Now().Add(lockWait)
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		err := try()
		var locked *LockedError
		if !errors.As(err, &locked) || time.Now().After(deadline) {
			return err
		}

		select {
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
