package follow

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// EndTurn interrupts a turn and waits for its end, for as long as bound.
func EndTurn(ctx context.Context, e engine.Engine, id p.ConversationID, turn p.TurnID, bound time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if r, err := e.Submit(ctx, id, p.Interrupt{Turn: turn}); err == nil {
		_, _ = engine.FollowTurn(ctx, e, id, r.Turn, r.Seq, nil) // who asks leaves in any case
	}
}
