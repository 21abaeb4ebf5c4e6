package engine

import (
	"context"

	"github.com/fermata-agent/fermata/internal/conversation"
)

// A Client is the one that submits an op.
type Client struct {
	Name string // for users: events that its ops cause carry it

	// Op is the client's name of the op. An op that is submitted again with the same name, because its answer
	// was lost, is not done again.
	Op string

	// Brings is what the turns that it starts are run with, as Config.ForClient understands it. It is never
	// recorded.
	Brings any
}

// WithClient sets the client of the ops that are submitted with the returned context.
func WithClient(ctx context.Context, c Client) context.Context {
	return conversation.WithClient(ctx, conversation.Client(c))
}

// ClientOf returns the client that WithClient set, or the zero value.
func ClientOf(ctx context.Context) Client { return Client(conversation.ClientOf(ctx)) }
