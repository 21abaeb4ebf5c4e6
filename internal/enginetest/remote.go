package enginetest

import (
	"context"
	"iter"
	"net"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// connect returns the engine as another process has it, over a connection in
// memory.
func (e *Engine) connect() engine.Engine {
	e.t.Helper()
	ours, theirs := net.Pipe()
	server := remote.NewServer(e.Local, "test")
	go func() { _ = server.ServeConn(context.WithoutCancel(e.t.Context()), ours) }() // ends with the connection
	client, err := remote.Connect(context.WithoutCancel(e.t.Context()), theirs, remote.Options{})
	if err != nil {
		e.t.Fatalf("connect: %v", err)
	}
	e.t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

// Create implements engine.Engine.
func (e *Engine) Create(ctx context.Context, s p.Settings) (p.ConversationID, error) {
	return e.client.Create(ctx, s)
}

// Resume implements engine.Engine.
func (e *Engine) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	return e.client.Resume(ctx, id)
}

// Submit implements engine.Engine.
func (e *Engine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	return e.client.Submit(ctx, id, op)
}

// Subscribe implements engine.Engine.
func (e *Engine) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return e.client.Subscribe(ctx, id, after)
}

// Attach implements engine.Engine.
func (e *Engine) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return e.client.Attach(ctx, id, after, live)
}

// Fork implements engine.Engine.
func (e *Engine) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	return e.client.Fork(ctx, id, upTo)
}

// List implements engine.Engine.
func (e *Engine) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	return e.client.List(ctx, o)
}

// Archive implements engine.Engine.
func (e *Engine) Archive(ctx context.Context, id p.ConversationID) error {
	return e.client.Archive(ctx, id)
}

// Unarchive implements engine.Engine.
func (e *Engine) Unarchive(ctx context.Context, id p.ConversationID) error {
	return e.client.Unarchive(ctx, id)
}

// Delete implements engine.Engine.
func (e *Engine) Delete(ctx context.Context, id p.ConversationID) error {
	return e.client.Delete(ctx, id)
}

// Release implements engine.Engine.
func (e *Engine) Release(ctx context.Context, id p.ConversationID) error {
	return e.client.Release(ctx, id)
}
