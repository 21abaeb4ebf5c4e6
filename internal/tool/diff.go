package tool

import (
	"context"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// Changes is what one turn changes in files. Make one for each turn and give it
// to all its tools; those that write run one at a time. A nil one knows nothing.
type Changes struct {
	plans []*patch.Plan // the patches, in order
}

// before is called when something is about to write.
func (c *Changes) before(context.Context, Call) {}

// patched adds a patch that was applied.
func (c *Changes) patched(p *patch.Plan) {
	if c != nil {
		c.plans = append(c.plans, p)
	}
}

// diff returns what the turn has changed so far.
func (c *Changes) diff(_ context.Context, call Call) *protocol.TurnDiff {
	if c == nil {
		return nil
	}
	return &protocol.TurnDiff{Diff: patch.Combine(c.plans...).Diff(call.Settings.Cwd)}
}
