package appserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/review"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var null = json.RawMessage("null")

// remove takes a thread away by one of the engine's methods, and notifies everybody.
func (c *conn) remove(ctx context.Context, name, method string, how func(context.Context, p.ConversationID) error) (wire.None, error) {
	id, err := parse(name, noRollout)
	if err != nil {
		return wire.None{}, err
	}
	turn := c.s.running(ctx, id)
	if err := how(ctx, id); err != nil {
		return wire.None{}, failed(err, noRollout, id)
	}
	c.s.mu.Lock()
	loaded := c.s.loaded[id] != nil
	delete(c.s.loaded, id)
	c.s.mu.Unlock()
	c.thread(id).group.Ended(ctx, turn) // the answer does not overtake the end, nor do the notifications
	for _, other := range c.s.connected() {
		if other == c || other.follows(id) == nil {
			other.removed(id, loaded, method)
			continue
		}
		go func() { // ends when the end of the turn was sent, or with the connection
			other.thread(id).group.Ended(other.life, turn)
			other.removed(id, loaded, method)
		}()
	}
	return wire.None{}, nil
}

// running is the turn of a thread that removing it ends; 0 if no client follows it, or nothing runs.
func (s *Server) running(ctx context.Context, id p.ConversationID) p.TurnID {
	if !s.isLoaded(id) {
		return 0
	}
	if snap, err := s.o.Engine.Resume(ctx, id); err == nil && snap.Active {
		return snap.Turn
	}
	return 0
}

// removed notifies a client that a thread was taken away.
func (c *conn) removed(id p.ConversationID, loaded bool, method string) {
	if loaded {
		c.closed(id)
	}
	c.later(method, wire.ThreadRef{ThreadID: string(id)})
}

func (c *conn) threadArchive(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadName) (wire.None, error) {
	return c.remove(ctx, in.ThreadID, "thread/archived", c.s.o.Engine.Archive)
}

func (c *conn) threadDelete(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadName) (wire.None, error) {
	return c.remove(ctx, in.ThreadID, "thread/deleted", c.s.o.Engine.Delete)
}

func (c *conn) threadUnarchive(ctx context.Context, r *jsonrpc.Request, in wire.ThreadName) (wire.ThreadAnswer, error) {
	id, err := parse(in.ThreadID, noRollout)
	if err != nil {
		return wire.ThreadAnswer{}, err
	}
	if err := c.s.o.Engine.Unarchive(ctx, id); err != nil {
		return wire.ThreadAnswer{}, failed(err, noRollout, id)
	}
	c.s.broadcast(nil, "thread/unarchived", wire.ThreadRef{ThreadID: string(id)})
	return c.threadRead(ctx, r, wire.ThreadRead{ThreadID: in.ThreadID})
}

// submit hands an op to a thread.
func (c *conn) submit(ctx context.Context, name string, op p.Op) (p.ConversationID, error) {
	id, err := parse(name, notFound)
	if err != nil {
		return id, err
	}
	c.thread(id).use()
	_, err = c.s.o.Engine.Submit(ctx, id, op)
	return id, failed(err, notFound, id)
}

func (c *conn) threadNameSet(ctx context.Context, _ *jsonrpc.Request, in wire.NameSet) (wire.None, error) {
	id, err := c.submit(ctx, in.ThreadID, p.Rename{Title: in.Name})
	if err != nil {
		return wire.None{}, err
	}
	// Those that follow the thread are notified by their followers.
	c.s.toOthers(id, "thread/name/updated", wire.NameUpdated{ThreadID: string(id), ThreadName: orNull(in.Name)})
	return wire.None{}, nil
}

func (c *conn) threadRevert(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadRevert) (wire.Reverted, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.Reverted{}, err
	}
	turn, ok := items.ParseTurn(id, in.BeforeTurnID)
	if !ok {
		return wire.Reverted{}, refuse("there is no turn %s in this thread", in.BeforeTurnID)
	}
	if _, err := c.submit(ctx, in.ThreadID, p.Revert{Before: turn}); err != nil {
		return wire.Reverted{}, err
	}
	f, err := c.s.read(ctx, id)
	if err != nil {
		return wire.Reverted{}, failed(err, notRead, id)
	}
	return wire.Reverted{Thread: c.s.threadOf(f, f.Turns())}, nil
}

func (c *conn) threadSettingsUpdate(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadSettingsUpdate) (wire.None, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.None{}, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return wire.None{}, failed(err, notFound, id)
	}
	return wire.None{}, c.configure(ctx, id, snap.Settings, in.Overrides)
}

func (c *conn) compactStart(ctx context.Context, r *jsonrpc.Request, in wire.ThreadName) (wire.None, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.None{}, err
	}
	err = c.begin(ctx, id, p.Compact{}, func(p.Receipt) { r.Reply(wire.None{}, nil) })
	return wire.None{}, failed(err, notFound, id)
}

func (c *conn) shellCommand(ctx context.Context, r *jsonrpc.Request, in wire.ShellCommand) (wire.None, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.None{}, err
	}
	err = c.begin(ctx, id, p.UserShell{Command: in.Command}, func(p.Receipt) { r.Reply(wire.None{}, nil) })
	return wire.None{}, failed(err, notFound, id)
}

func (c *conn) reviewStart(ctx context.Context, r *jsonrpc.Request, in wire.ReviewStart) (wire.ReviewStarted, error) {
	none := wire.ReviewStarted{}
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return none, err
	}
	target, err := reviewTarget(in.Target)
	if err != nil {
		return none, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	switch {
	case err != nil:
		return none, failed(err, notFound, id)
	case snap.Active:
		return none, refuse("a turn is running")
	}
	op := p.UserTurn{Content: p.Text(target.Prompt()), WhenBusy: p.Queue, Ref: items.ReviewRef(target.Title())}
	err = c.begin(ctx, id, op, func(receipt p.Receipt) {
		r.Reply(wire.ReviewStarted{Turn: items.Started(id, receipt.Turn), ReviewThreadID: string(id)}, nil)
	})
	return none, failed(err, notFound, id)
}

// reviewTarget reads what a client wants reviewed.
func reviewTarget(t wire.ReviewTarget) (review.Target, error) {
	field, value, target := "instructions", t.Instructions, review.Target{Instructions: t.Instructions}
	switch t.Type {
	case "uncommittedChanges":
		return review.Target{}, nil
	case "baseBranch":
		field, value, target = "branch", t.Branch, review.Target{Base: t.Branch}
	case "commit":
		field, value, target = "sha", t.SHA, review.Target{Commit: t.SHA}
	}
	if value == "" {
		return target, badParams("target: %s is missing", field)
	}
	return target, nil
}

func (c *conn) terminalsList(ctx context.Context, _ *jsonrpc.Request, in wire.QueueList) (wire.Terminals, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.Terminals{}, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return wire.Terminals{}, failed(err, notFound, id)
	}
	out := wire.Terminals{Data: []wire.Terminal{}}
	for _, b := range snap.Background {
		out.Data = append(out.Data, wire.Terminal{
			ItemID: b.Call.String(), ProcessID: b.ID.Item().String(), Command: transcript.Quote(b.Command), Cwd: b.Cwd,
		})
	}
	return out, nil
}

func (c *conn) terminalEnd(ctx context.Context, _ *jsonrpc.Request, in wire.TerminalEnd) (wire.Terminated, error) {
	item, err := p.ParseItemID(in.ProcessID)
	if err != nil {
		return wire.Terminated{}, refuse("there is no process %s in this thread", in.ProcessID)
	}
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.Terminated{}, err
	}
	_, err = c.s.o.Engine.Submit(ctx, id, p.KillBackground{ID: p.BackgroundID(item.Index)})
	if errors.Is(err, engine.ErrNoBackground) {
		return wire.Terminated{}, nil
	}
	return wire.Terminated{Terminated: err == nil}, failed(err, notFound, id)
}

func (c *conn) terminalsClean(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadName) (wire.None, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.None{}, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return wire.None{}, failed(err, notFound, id)
	}
	for _, b := range snap.Background {
		if _, err := c.s.o.Engine.Submit(ctx, id, p.KillBackground{ID: b.ID}); err != nil && !errors.Is(err, engine.ErrNoBackground) {
			return wire.None{}, failed(err, notFound, id)
		}
	}
	return wire.None{}, nil
}
