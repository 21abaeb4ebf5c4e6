package follow

import (
	"context"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// Held is a turn that is held at a limit, or was when its conversation was opened.
type Held struct {
	Turn p.TurnID
	Last p.Seq // of the conversation when it was opened
}

// TryNow ends a hold and follows the turn. Opening a conversation ends a hold whose
// limit has passed, so the turn may run already, or be over: then it is only followed.
// When ctx ends the turn is interrupted.
func TryNow(ctx context.Context, e engine.Engine, id p.ConversationID, op p.TryNow, held Held, fn func(p.Event)) (engine.TurnEnd, error) {
	end, err := engine.RunHeld(ctx, e, id, op, fn)
	refused := err != nil && end.Turn == 0
	if !refused || ctx.Err() != nil {
		return end, err
	}
	life := context.WithoutCancel(ctx)
	snap, failed := e.Resume(life, id)
	if failed != nil || snap.Hold != nil {
		return end, err
	}
	for _, ev := range CatchUp(life, e, id, held.Turn, held.Last) {
		fn(ev)
	}
	return Turn(ctx, e, id, held.Turn, held.Last, fn)
}

// Turn follows a turn that another op started. When ctx ends the turn is interrupted.
func Turn(ctx context.Context, e engine.Engine, id p.ConversationID, turn p.TurnID, after p.Seq, fn func(p.Event)) (engine.TurnEnd, error) {
	life := context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _, _ = e.Submit(life, id, p.Interrupt{Turn: turn}) })
	defer stop()
	return engine.FollowTurn(life, e, id, turn, after, fn)
}
