package engine

import (
	"context"

	"github.com/fermata-agent/fermata/internal/conversation"
)

// A Client is who submits an op: its name, its name of the op, and what it brings.
type Client = conversation.Client

// WithClient says who submits the ops that are submitted with the returned context. Events that
// they cause carry the name; an op that has a name and was recorded is not done again.
func WithClient(ctx context.Context, c Client) context.Context {
	return conversation.WithClient(ctx, c)
}

// ClientOf returns what WithClient said, or the zero value.
func ClientOf(ctx context.Context) Client { return conversation.ClientOf(ctx) }
