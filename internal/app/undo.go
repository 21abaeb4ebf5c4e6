package app

import (
	"context"
	"os"

	"github.com/fermata-agent/fermata/internal/app/undo"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Undo is what restoring a turn's files would do.
type Undo = undo.Undo

// PlanUndo works out what undoing a turn would do; turn 0 is the last one that
// changed files. Nothing is changed before Do is called.
func PlanUndo(ctx context.Context, e Conversations, id p.ConversationID, turn p.TurnID) (*Undo, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	return undo.Plan(ctx, e, home, id, turn)
}
