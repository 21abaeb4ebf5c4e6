package appserver

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/queue"
	"github.com/fermata-agent/fermata/internal/surface/appserver/view"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// queue returns the queue of a thread.
func (s *Server) queue(ctx context.Context, name string) (*queue.Queue, p.ConversationID, engine.Snapshot, error) {
	id, err := parse(name, notFound)
	if err != nil {
		return nil, id, engine.Snapshot{}, err
	}
	snap, err := s.o.Engine.Resume(ctx, id)
	if err != nil {
		return nil, id, snap, failed(err, notFound, id)
	}
	s.mu.Lock()
	q := s.queues[id]
	s.mu.Unlock()
	if q != nil {
		return q, id, snap, nil
	}
	if q, err = s.openQueue(ctx, id); err != nil {
		return nil, id, snap, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[id] == nil {
		s.queues[id] = q
	}
	return s.queues[id], id, snap, nil
}

// openQueue reads the queue of a thread. What was sent from it before a crash is not in it any more.
func (s *Server) openQueue(ctx context.Context, id p.ConversationID) (*queue.Queue, error) {
	q, err := queue.Open(filepath.Join(s.o.Home, "queues"), id)
	if err != nil {
		return nil, err
	}
	if left, _ := q.List(); len(left) == 0 {
		return q, nil
	}
	f, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	sent := map[string]bool{}
	for _, t := range f.Turns() {
		for _, it := range t.Items {
			if m, ok := it.Of.(wire.UserMessage); ok && m.ClientID != nil {
				sent[*m.ClientID] = true
			}
		}
	}
	return q, q.Forget(func(clientID string) bool { return sent[clientID] })
}

func (s *Server) queueChanged(id p.ConversationID) {
	s.broadcast(nil, "thread/queue/changed", wire.ThreadRef{ThreadID: string(id)})
}

func queued(e queue.Entry) wire.QueuedSubmission {
	return wire.QueuedSubmission{ID: e.ID, ClientID: e.ClientID, Input: items.Inputs(e.Content)}
}

// queueError is an error of a queue in a client's words.
func queueError(err error) error {
	switch {
	case errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrUnknown):
		return refuse("%v", err)
	case errors.Is(err, queue.ErrOrder):
		return badParams("queuedSubmissionIds: %v", err)
	case err != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
	}
	return nil
}

func (c *conn) queueAdd(ctx context.Context, _ *jsonrpc.Request, in wire.QueueAdd) (wire.QueuedOne, error) {
	q, id, snap, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return wire.QueuedOne{}, err
	}
	content, err := view.Contents(in.Input, snap.Settings.Cwd)
	if err != nil {
		return wire.QueuedOne{}, err
	}
	e, err := q.Add(in.ClientID, content)
	if err != nil {
		return wire.QueuedOne{}, queueError(err)
	}
	c.s.queueChanged(id)
	c.s.drive(id, q)
	return wire.QueuedOne{QueuedSubmission: queued(e)}, nil
}

func (c *conn) queueUpdate(ctx context.Context, _ *jsonrpc.Request, in wire.QueueUpdate) (wire.QueuedOne, error) {
	q, id, snap, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return wire.QueuedOne{}, err
	}
	content, err := view.Contents(in.Input, snap.Settings.Cwd)
	if err != nil {
		return wire.QueuedOne{}, err
	}
	e, err := q.Update(in.ID, content)
	if err == nil {
		c.s.queueChanged(id)
	}
	return wire.QueuedOne{QueuedSubmission: queued(e)}, queueError(err)
}

func (c *conn) queueList(ctx context.Context, _ *jsonrpc.Request, in wire.QueueList) (wire.Queued, error) {
	q, _, _, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return wire.Queued{}, err
	}
	entries, paused := q.List()
	data, next, err := page(entries, in.Cursor, in.Limit, "asc")
	out := wire.Queued{Data: []wire.QueuedSubmission{}, NextCursor: next, Paused: paused}
	for _, e := range data {
		out.Data = append(out.Data, queued(e))
	}
	return out, err
}

func (c *conn) queueDelete(ctx context.Context, _ *jsonrpc.Request, in wire.QueueDelete) (wire.Deleted, error) {
	q, id, _, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return wire.Deleted{}, err
	}
	deleted, err := q.Delete(in.ID)
	if deleted {
		c.s.queueChanged(id)
	}
	return wire.Deleted{Deleted: deleted}, queueError(err)
}

func (c *conn) queueReorder(ctx context.Context, _ *jsonrpc.Request, in wire.QueueReorder) (wire.None, error) {
	q, id, _, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return wire.None{}, err
	}
	if err := q.Reorder(in.IDs); err != nil {
		return wire.None{}, queueError(err)
	}
	c.s.queueChanged(id)
	return wire.None{}, nil
}

// queueStart sends a message of the queue now, and lets the queue go on.
func (c *conn) queueStart(ctx context.Context, r *jsonrpc.Request, in wire.QueueStart) (wire.TurnStarted, error) {
	none := wire.TurnStarted{}
	q, id, snap, err := c.s.queue(ctx, in.ThreadID)
	if err != nil {
		return none, err
	}
	if snap.Active {
		return none, refuse("a turn is running")
	}
	entries, _ := q.List()
	for _, e := range entries {
		if in.ID != "" && e.ID != in.ID {
			continue
		}
		op := p.UserTurn{Content: e.Content, WhenBusy: p.Queue, Ref: e.ClientID}
		err := c.begin(ctx, id, op, func(receipt p.Receipt) {
			r.Reply(wire.TurnStarted{Turn: items.Started(id, receipt.Turn), State: string(receipt.State)}, nil)
		})
		if err != nil {
			return none, failed(err, notFound, id)
		}
		_, err = q.Delete(e.ID)
		if err = errors.Join(err, q.Pause(false)); err != nil {
			c.s.o.Log.Warn("queue", "error", err)
		}
		c.s.queueChanged(id)
		c.s.drive(id, q)
		return none, nil
	}
	return none, queueError(queue.ErrUnknown)
}

// drive sends what is in a queue, each message when the turn before has completed or failed. One that was interrupted pauses it.
func (s *Server) drive(id p.ConversationID, q *queue.Queue) {
	if !q.Drive() {
		return
	}
	go func() { // ends with the queue, or with the server
		for {
			e, ok := q.Next()
			if !ok {
				return
			}
			var err error
			if broken := s.o.Panicked.Run(func() { err = s.sendNext(id, q, e) }); broken != nil {
				err = broken
			}
			if err != nil {
				s.o.Log.Warn("queue", "error", err)
				q.Stop()
				return
			}
		}
	}()
}

func (s *Server) sendNext(id p.ConversationID, q *queue.Queue, e queue.Entry) error {
	snap, err := s.o.Engine.Resume(s.life, id)
	if err != nil {
		return err
	}
	if snap.Active {
		end, err := engine.FollowTurn(s.life, s.o.Engine, id, snap.Turn, snap.Last, nil)
		if err != nil {
			return err
		}
		if end.End.Reason != p.Completed && end.End.Reason != p.Failed {
			defer s.queueChanged(id)
			return q.Pause(true)
		}
		return nil
	}
	if _, err := s.o.Engine.Submit(s.life, id, p.UserTurn{Content: e.Content, WhenBusy: p.Queue, Ref: e.ClientID}); err != nil {
		return err
	}
	defer s.queueChanged(id)
	_, err = q.Delete(e.ID)
	return err
}
