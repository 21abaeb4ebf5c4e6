package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/view"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// begin submits an op that starts a turn, and answers before anything of the turn is sent.
func (c *conn) begin(ctx context.Context, id p.ConversationID, op p.Op, answer func(p.Receipt)) error {
	t := c.thread(id)
	leave, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	receipt, err := c.s.o.Engine.Submit(context.WithoutCancel(ctx), id, op)
	if err != nil {
		return err
	}
	t.use()
	answer(receipt)
	return nil
}

func (c *conn) turnStart(ctx context.Context, r *jsonrpc.Request, in wire.TurnStart) (wire.TurnStarted, error) {
	none := wire.TurnStarted{}
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return none, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return none, failed(err, notFound, id)
	}
	var content []p.Content
	if len(in.Input) > 0 || len(in.Returned) == 0 {
		if content, err = view.Contents(in.Input, snap.Settings.Cwd); err != nil {
			return none, err
		}
	}
	if err := c.configure(ctx, id, snap.Settings, in.Overrides); err != nil {
		return none, err
	}
	if err := c.outputSchema(ctx, id, snap.Settings, in.OutputSchema); err != nil {
		return none, err
	}
	op := p.UserTurn{Content: content, WhenBusy: p.WhenBusy(in.WhenBusy), Ref: in.ClientID, Returned: inputIDs(in.Returned)}
	err = c.begin(ctx, id, op, func(receipt p.Receipt) {
		r.Reply(wire.TurnStarted{Turn: items.Started(id, receipt.Turn), State: string(receipt.State)}, nil)
	})
	return none, failed(err, notFound, id)
}

func inputIDs(numbers []int) (ids []p.InputID) {
	for _, n := range numbers {
		ids = append(ids, p.InputID(n))
	}
	return ids
}

// outputSchema sets the form of the last message for the turn that is about to start. That of an earlier turn is over.
func (c *conn) outputSchema(ctx context.Context, id p.ConversationID, now p.Settings, schema json.RawMessage) error {
	if string(schema) == "null" {
		schema = nil
	}
	if len(schema) == 0 && len(now.OutputSchema) == 0 || string(schema) == string(now.OutputSchema) {
		return nil
	}
	over := p.Overrides{OutputSchema: append(json.RawMessage{}, schema...)} // not nil
	_, err := c.s.o.Engine.Submit(ctx, id, p.Configure{Overrides: over})
	return failed(err, notFound, id)
}

func (c *conn) turnSteer(ctx context.Context, r *jsonrpc.Request, in wire.TurnSteer) (wire.TurnName, error) {
	none := wire.TurnName{}
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return none, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return none, failed(err, notFound, id)
	}
	content, err := view.Contents(in.Input, snap.Settings.Cwd)
	if err != nil {
		return none, err
	}
	turn, ok := items.ParseTurn(id, in.ExpectedTurnID)
	if !ok {
		return none, c.noTurn(ctx, id, 0, in.ExpectedTurnID, "steer")
	}
	op := p.UserTurn{Content: content, Into: turn, Ref: in.ClientID}
	err = c.begin(ctx, id, op, func(p.Receipt) { r.Reply(wire.TurnName{TurnID: in.ExpectedTurnID}, nil) })
	if errors.Is(err, engine.ErrNotSteerable) {
		return none, c.noTurn(ctx, id, turn, in.ExpectedTurnID, "steer")
	}
	return none, failed(err, notFound, id)
}

// noTurn says why a turn cannot be interrupted or steered. That it has ended is said after its end.
func (c *conn) noTurn(ctx context.Context, id p.ConversationID, turn p.TurnID, name, what string) error {
	snap, err := c.s.o.Engine.Resume(ctx, id)
	switch {
	case err != nil:
		return failed(err, notFound, id)
	case snap.Active && snap.Turn == turn:
		return refuse("this turn cannot be %sed: it is ending, or makes no more requests", strings.TrimSuffix(what, "e"))
	case snap.Active:
		if turn != 0 && turn < snap.Turn {
			c.thread(id).group.Ended(ctx, turn)
		}
		return refuse("expected active turn id `%s` but found `%s`", name, items.TurnName(id, snap.Turn))
	}
	c.thread(id).group.Ended(ctx, snap.Turn)
	return refuse("no active turn to %s", what)
}

// interruptArrives registers an interrupt when it is read.
func (c *conn) interruptArrives(params json.RawMessage) (any, func()) {
	id, err := p.ParseConversationID(threadLane(params))
	if err != nil {
		return nil, func() {} // its handler refuses it
	}
	i := c.interrupts.Arrive(id)
	return i, i.Over
}

// turnInterrupt is answered after the end of the turn. So is one that comes when another one has stopped the turn already, and is
// not answered yet.
func (c *conn) turnInterrupt(ctx context.Context, r *jsonrpc.Request, in wire.TurnInterrupt) (wire.None, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.None{}, err
	}
	var turn p.TurnID
	if in.TurnID != "" {
		ok := false
		if turn, ok = items.ParseTurn(id, in.TurnID); !ok {
			return wire.None{}, c.noTurn(ctx, id, 0, in.TurnID, "interrupt")
		}
	}
	ctx = r.UntilEnd(ctx)
	_, err = r.Arrived.(*follow.Interrupt).Stop(ctx, ctx, c.thread(id).group, turn, r.Release)
	if errors.Is(err, engine.ErrNothingToStop) {
		return wire.None{}, c.noTurn(ctx, id, turn, in.TurnID, "interrupt")
	}
	return wire.None{}, failed(err, notFound, id)
}

// threadLane keeps the requests that send something to a thread in order.
func threadLane(params json.RawMessage) string {
	var in struct {
		ThreadID string `json:"threadId"`
	}
	_ = json.Unmarshal(params, &in) // a bad one is refused by its handler
	return strings.ToLower(in.ThreadID)
}
