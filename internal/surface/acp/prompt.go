package acp

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// prompt starts a turn, or steers the one that runs, and is answered when that has ended.
func (c *conn) prompt(ctx context.Context, r *jsonrpc.Request, in wire.Prompt) (wire.PromptResult, error) {
	s, err := c.find(in.SessionID)
	if err != nil {
		return wire.PromptResult{}, err
	}
	content, err := contents(in.Prompt)
	if err != nil {
		return wire.PromptResult{}, err
	}
	defer c.enterPrompt()()
	cmd, args, isCommand := findCommand(content)
	switch {
	case isCommand && cmd.do != nil:
		return c.doCommand(ctx, s, cmd, args)
	case isCommand && cmd.op != nil:
		return c.runOp(ctx, r, s, cmd.op)
	case isCommand:
		content = p.Text(cmd.send(args))
	default:
		content = c.expand(s.cwd, content)
	}
	x := s.expect(c.nextRef())
	// A message that was read is recorded, also if the client leaves or cancels meanwhile.
	if _, err := s.run(ctx, p.UserTurn{Content: content, Ref: x.ref}); err != nil {
		s.drop(x)
		return wire.PromptResult{}, failed(err, s.id)
	}
	s.following().use()
	return c.await(ctx, r, s, x)
}

// doCommand carries out a command that is answered at once.
func (c *conn) doCommand(ctx context.Context, s *session, cmd command, args string) (wire.PromptResult, error) {
	text, err := cmd.do(c, ctx, s, args)
	if err != nil {
		return wire.PromptResult{}, badParams("/%s: %v", cmd.name, err)
	}
	c.update(ctx, s.id, wire.Chunk{Update: wire.AgentChunk, Content: wire.Text(text)})
	return wire.PromptResult{StopReason: wire.EndTurn}, nil
}

// runOp submits an op that runs a turn.
func (c *conn) runOp(ctx context.Context, r *jsonrpc.Request, s *session, op p.Op) (wire.PromptResult, error) {
	receipt, err := s.run(ctx, op)
	if err != nil {
		return wire.PromptResult{}, failed(err, s.id)
	}
	s.following().use()
	return c.await(ctx, r, s, s.expectTurn(receipt.Turn))
}

// nextRef names the next message.
func (c *conn) nextRef() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts++
	return c.name + strconv.Itoa(c.prompts)
}

// await waits until a prompt can be answered. From here on the session takes other requests.
func (c *conn) await(ctx context.Context, r *jsonrpc.Request, s *session, x *expected) (wire.PromptResult, error) {
	r.Release()
	select {
	case <-x.done:
		return x.result()
	case <-ctx.Done(): // the client cancels the request: that is session/cancel in another form
		if err := c.interrupt(context.WithoutCancel(ctx), s.id); err != nil {
			c.s.o.Log.Warn("cancel", "error", err)
		}
	case <-c.rpc.Ending().Done():
		if !c.endTurn(s, x) {
			return wire.PromptResult{}, jsonrpc.ErrEnd
		}
	}
	select {
	case <-x.done:
		return x.result()
	case <-c.life.Done():
		return wire.PromptResult{}, jsonrpc.ErrEnd
	}
}

// endTurn interrupts what a prompt started when the client has gone, unless that is to outlive it. A turn that waits for the user goes on
// waiting: it is asked again when the session is loaded. It reports whether there is an end to wait for.
func (c *conn) endTurn(s *session, x *expected) bool {
	turn := s.turnOf(x)
	if c.s.o.Detached || turn == 0 {
		return false
	}
	if snap, err := c.s.o.Engine.Resume(c.life, s.id); err != nil || snap.Turn != turn || snap.Waiting {
		return err == nil && !snap.Waiting // it has ended, and its end is on its way
	}
	_, err := c.s.o.Engine.Submit(c.life, s.id, p.Interrupt{Turn: turn})
	return err == nil || errors.Is(err, engine.ErrNothingToStop)
}

// cancel interrupts the turn that runs. What came of that is in the answer to its prompt.
func (c *conn) cancel(ctx context.Context, in wire.Session) {
	s, err := c.find(in.SessionID)
	if err != nil {
		c.s.o.Log.Debug("cancel", "error", err)
		return
	}
	if err := c.interrupt(ctx, s.id); err != nil {
		c.s.o.Log.Warn("cancel", "error", err)
	}
}

// interrupt interrupts the turn that runs, if one does. It does not wait for its end.
func (c *conn) interrupt(ctx context.Context, id p.ConversationID) error {
	_, err := c.s.o.Engine.Submit(ctx, id, p.Interrupt{})
	if errors.Is(err, engine.ErrNothingToStop) {
		return nil
	}
	return err
}

// result is the answer to a prompt.
func (x *expected) result() (wire.PromptResult, error) {
	switch {
	case x.err != nil:
		return wire.PromptResult{}, fmt.Errorf("the session can no longer be followed: %w", x.err)
	case x.returned:
		return wire.PromptResult{StopReason: wire.Cancelled, Meta: meta("returned", true)}, nil
	}
	switch x.end.Reason {
	case p.Completed:
		return wire.PromptResult{StopReason: wire.EndTurn}, nil
	case p.Failed:
		return wire.PromptResult{}, turnError(x.end.Error)
	case p.Crashed:
		return wire.PromptResult{}, errors.New("the process that ran the turn was killed; the conversation is saved")
	}
	return wire.PromptResult{StopReason: wire.Cancelled, Meta: meta("reason", x.end.Reason)}, nil
}

func meta(key string, value any) map[string]any {
	return map[string]any{"fermata": map[string]any{key: value}}
}

// turnError is why a turn failed, for people.
func turnError(err *p.Error) error {
	if err == nil {
		return errors.New("the turn failed")
	}
	code := jsonrpc.CodeInternal
	if err.Kind == p.ErrorAuth {
		code = wire.CodeAuth
	}
	if err.Hint == "" {
		return jsonrpc.Errorf(code, "%s", err.Message)
	}
	return jsonrpc.Errorf(code, "%s (%s)", err.Message, err.Hint)
}

// enterPrompt counts a prompt that is not answered; the returned function counts it out. When the client has gone, the last one ends what the
// connection does by itself.
func (c *conn) enterPrompt() (leave func()) {
	c.count(1)
	return func() { c.count(-1) }
}

// count adds to the prompts that are not answered.
func (c *conn) count(n int) {
	c.mu.Lock()
	c.running += n
	idle := c.running == 0
	c.mu.Unlock()
	if idle && c.rpc.Ended() {
		c.end()
	}
}

// awaitAnswers waits until all prompts of a session are answered.
func (s *session) awaitAnswers(ctx context.Context) {
	s.mu.Lock()
	list := append([]*expected{}, s.expects...)
	s.mu.Unlock()
	for _, x := range list {
		select {
		case <-x.done:
		case <-ctx.Done():
			return
		case <-s.c.life.Done():
			return
		}
	}
}
