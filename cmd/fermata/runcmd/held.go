package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// tryNow makes the run end a hold, with other settings if some are asked for. A turn whose limit has passed
// continues when its conversation is opened, so it may be under way already.
func (f execFlags) tryNow(ctx context.Context, s cli.Streams, r *app.App, snap engine.Snapshot, over p.Overrides, o *exec.Options) error {
	if err := f.checkHeld(ctx, r, snap); err != nil {
		return err
	}
	o.Conversation, o.Before, o.Notices = snap.ID, snap.Usage, append(o.Notices, snap.Recovered...)
	o.TryNow, o.Held = &p.TryNow{}, follow.Held{Turn: snap.Turn, Last: snap.Last}
	changed := settingsText(over.Apply(snap.Settings)) != settingsText(snap.Settings)
	if changed {
		o.TryNow.Overrides = &over
	}
	if snap.Hold == nil {
		fmt.Fprintf(s.Err, "fermata: turn %d no longer waits for the limit: it is already running\n", snap.Turn)
	}
	if snap.Hold == nil && changed {
		fmt.Fprintf(s.Err, "fermata: other settings come too late for it: it continues with %s\n", snap.Settings.Model)
	}
	return f.guard(r.Config, over.Apply(snap.Settings), o)
}

// checkHeld refuses --now where no turn waits, or has waited, for a limit.
func (f execFlags) checkHeld(ctx context.Context, r *app.App, snap engine.Snapshot) error {
	if snap.Hold != nil {
		return nil
	}
	if !snap.Active {
		return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("--now: the conversation does not wait for a limit"), Hint: "give a prompt instead"}
	}
	for ev, err := range r.Engine.Read(ctx, snap.ID) {
		if err != nil {
			return err
		}
		if _, held := ev.Body.(*p.Held); held && ev.Turn == snap.Turn {
			return nil
		}
	}
	return &cli.ExitError{
		Code: cli.ExitFailed, Err: fmt.Errorf("--now: turn %d runs; it does not wait for a limit", snap.Turn),
		Hint: "fermata attach " + string(snap.ID) + " follows it",
	}
}
