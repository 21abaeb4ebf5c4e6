package conversation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/fold"
)

type (
	followOp struct{} // a client follows from now on

	// A releaseOp asks to close the conversation if nothing goes on.
	releaseOp struct {
		waiting bool // a turn that only waits, for an approval or a limit, counts as nothing
	}
)

// Follow says that a client follows the conversation, which is then kept open for
// longer when nothing happens, and returns its state. Whoever follows calls
// Unfollow when it leaves.
func (c *Conversation) Follow(ctx context.Context) (Snapshot, error) {
	a, err := c.ask(ctx, followOp{})
	return a.snapshot, err
}

// Unfollow takes back a Follow. It does nothing once the conversation is closed.
func (c *Conversation) Unfollow() {
	select {
	case c.unfollow <- struct{}{}:
	case <-c.done:
	}
}

// ReleaseIdle closes the conversation if nothing goes on in it, not even an undo, and reports
// whether it does. It does not wait until it is closed.
func (c *Conversation) ReleaseIdle(ctx context.Context) bool {
	a, err := c.ask(ctx, releaseOp{})
	return a.released || errors.Is(err, ErrClosed)
}

// ErrRuns says that a conversation was not closed because something goes on in it.
var ErrRuns = errors.New("something runs in the conversation")

// ReleaseWaiting closes the conversation if nothing goes on in it, or its turn only waits, for an approval or for a limit: whoever opens it next
// waits in its place. Else it returns ErrRuns.
func (c *Conversation) ReleaseWaiting(ctx context.Context) error {
	a, err := c.ask(ctx, releaseOp{waiting: true})
	switch {
	case errors.Is(err, ErrClosed):
		return nil
	case err != nil:
		return err
	case !a.released:
		return ErrRuns
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Err is why the journal failed, if it has. It may be called when Done is closed.
func (c *Conversation) Err() error { return c.err }

// resting reports whether nothing goes on that needs this process: no turn but
// one that waits for an approval, no background command, nothing that waits for
// the disk. All that there is, is in the journal.
func (o *owner) resting() bool {
	return o.restingBut(o.hold == nil && !o.cfg.KeepWaiting)
}

// restingBut is resting, with what counts as waiting: waitingRests says that a turn which only waits needs no process.
func (o *owner) restingBut(waitingRests bool) bool {
	quiet := !o.state.Active || o.state.Waiting() && waitingRests
	return quiet && !o.ending() && len(o.state.Pending) == 0 && len(o.state.Background) == 0 &&
		len(o.effects) == 0 && len(o.replies) == 0
}

// undoing reports whether an undo was started whose outcome is not recorded. Its client carries it out: a conversation that
// is opened again meanwhile would settle what is under way.
func (o *owner) undoing() bool {
	return slices.ContainsFunc(o.state.Patches, func(op fold.OpenPatch) bool { return op.Undoes != 0 })
}

// watchIdle starts the idle clock when nothing goes on. It starts anew with
// whatever the owner takes, but for looks. A client that carries out an undo has as long as one that follows.
func (o *owner) watchIdle() {
	if o.looked {
		o.looked = false
		return
	}
	stopTimer(&o.idle)
	after := o.cfg.IdleAfter
	if o.followers > 0 || o.undoing() {
		after = o.cfg.IdleFollowed
	}
	if after > 0 && o.resting() {
		o.idle = time.NewTimer(after)
	}
}

// release closes the conversation because nothing goes on in it.
func (o *owner) release() bool { return o.releaseIf(o.resting()) }

func (o *owner) releaseIf(resting bool) bool {
	if !resting {
		return false
	}
	o.released = true
	return true
}
