package appserver

import (
	"context"
	"errors"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// parse reads the id of a thread. What is wrong with it is said in the words that clients know for a thread that there is not.
func parse(name, unknown string) (p.ConversationID, error) {
	id, err := p.ParseConversationID(name)
	if err != nil {
		return "", refuse("%s: %s", unknown, name)
	}
	return id, nil
}

// The errors for a thread that there is not, by who asks.
const (
	notFound  = "thread not found"
	notRead   = "thread not loaded"
	noRollout = "no rollout found for thread id"
)

// failed is an error of the engine in the words that clients know.
func failed(err error, unknown string, id p.ConversationID) error {
	var own *jsonrpc.Error
	var locked *engine.LockedError
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.Is(err, engine.ErrNotFound):
		if unknown == noRollout {
			return refuse("%s %s", unknown, id)
		}
		return refuse("%s: %s", unknown, id)
	case errors.As(err, &locked):
		return refuse("thread %s already has an active writer", id)
	case errors.Is(err, engine.ErrBusy):
		return refuse("a turn is running")
	case errors.Is(err, engine.ErrEmpty):
		return refuse("input must not be empty")
	case errors.Is(err, engine.ErrRevert), errors.Is(err, engine.ErrNotReturned):
		return refuse("%v", err)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
}

func (c *conn) threadStart(ctx context.Context, r *jsonrpc.Request, in wire.ThreadStart) (wire.ThreadOpened, error) {
	overrides, plan, err := planned(in.Overrides)
	if err != nil {
		return wire.ThreadOpened{}, err
	}
	req, err := c.s.request(overrides)
	if err != nil {
		return wire.ThreadOpened{}, err
	}
	settings, remarks, err := c.s.o.Settings(req)
	if err != nil {
		return wire.ThreadOpened{}, refuse("%v", err)
	}
	settings.Ephemeral, settings.Plan = in.Ephemeral, plan != nil && *plan
	id, err := c.s.o.Engine.Create(ctx, settings)
	if err != nil {
		return wire.ThreadOpened{}, failed(err, notFound, id)
	}
	if in.ThreadSource != titleSource {
		c.remark(id, remarks)
	}
	return wire.ThreadOpened{}, c.subscribe(ctx, c.thread(id), func(f *items.Fold) {
		r.Reply(c.s.opened(f, f.Turns()), nil)
		c.announce(f)
	})
}

// titleSource is how clients begin the thread that finds a title for another one. What is remarked there is not read.
const titleSource = "thread_title"

// announce notifies everybody that a thread has begun, this client after its answer.
func (c *conn) announce(f *items.Fold) {
	started := wire.ThreadStarted{Thread: c.s.threadOf(f, []wire.Turn{})}
	_ = c.notify(c.life, "thread/started", started) // if it fails the client has gone
	c.s.broadcast(c, "thread/started", started)
}

func (c *conn) threadResume(ctx context.Context, r *jsonrpc.Request, in wire.ThreadResume) (wire.ThreadOpened, error) {
	id, err := parse(in.ThreadID, noRollout)
	if err != nil {
		return wire.ThreadOpened{}, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return wire.ThreadOpened{}, failed(err, noRollout, id)
	}
	if err := c.configure(ctx, id, snap.Settings, in.Overrides); err != nil {
		return wire.ThreadOpened{}, err
	}
	err = c.subscribe(ctx, c.thread(id), func(f *items.Fold) { r.Reply(c.s.opened(f, f.Turns()), nil) })
	return wire.ThreadOpened{}, failed(err, noRollout, id)
}

// configure changes the settings of a thread to what a client asks for.
func (c *conn) configure(ctx context.Context, id p.ConversationID, now p.Settings, o wire.Overrides) error {
	over, remarks, err := c.s.change(now, o)
	if err != nil {
		return err
	}
	c.remark(id, remarks)
	if over == nil {
		return nil
	}
	_, err = c.s.o.Engine.Submit(ctx, id, p.Configure{Overrides: *over})
	return failed(err, notFound, id)
}

func (c *conn) threadFork(ctx context.Context, r *jsonrpc.Request, in wire.ThreadFork) (wire.ThreadOpened, error) {
	none := wire.ThreadOpened{}
	from, err := parse(in.ThreadID, noRollout)
	switch {
	case err != nil:
		return none, err
	case in.Ephemeral:
		return none, badParams("ephemeral: a copy is always kept")
	case in.LastTurnID != "" && in.BeforeTurnID != "":
		return none, badParams("lastTurnId and beforeTurnId: only one of them")
	}
	f, err := c.s.read(ctx, from)
	if err != nil {
		return none, failed(err, noRollout, from)
	}
	upTo, err := forkPoint(f, in)
	if err != nil {
		return none, err
	}
	id, err := c.s.o.Engine.Fork(ctx, from, upTo)
	if err != nil {
		return none, failed(err, noRollout, from)
	}
	if err := c.configure(ctx, id, f.Settings, in.Overrides); err != nil {
		return none, err
	}
	err = c.subscribe(ctx, c.thread(id), func(f *items.Fold) {
		r.Reply(c.s.opened(f, f.Turns()), nil)
		c.announce(f)
	})
	return none, failed(err, noRollout, id)
}

// forkPoint is the event up to which a thread is copied; 0 is all of it.
func forkPoint(f *items.Fold, in wire.ThreadFork) (p.Seq, error) {
	name, last := in.LastTurnID, true
	if in.BeforeTurnID != "" {
		name, last = in.BeforeTurnID, false
	}
	if name == "" {
		return 0, nil
	}
	turn, ok := items.ParseTurn(f.ID, name)
	if !last {
		turn--
	}
	for ; turn > 0; turn-- { // a turn that has not ended is not copied
		if end := f.Ends[turn]; ok && end != 0 {
			return end, nil
		}
	}
	if ok && !last {
		return 1, nil // nothing but the beginning
	}
	return 0, refuse("there is no turn %s in this thread", name)
}

// read folds a thread up to now.
func (s *Server) read(ctx context.Context, id p.ConversationID) (*items.Fold, error) {
	f := items.New(id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	live := false
	for e, err := range s.o.Engine.Attach(ctx, id, 0, func() { live = true; cancel() }) {
		if live {
			break
		}
		if err != nil {
			return nil, err
		}
		f.Apply(e)
	}
	if !live {
		return nil, context.Cause(ctx)
	}
	return f, nil
}

func (c *conn) threadRead(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadRead) (wire.ThreadAnswer, error) {
	id, err := parse(in.ThreadID, notRead)
	if err != nil {
		return wire.ThreadAnswer{}, err
	}
	f, err := c.s.read(ctx, id)
	if err != nil {
		return wire.ThreadAnswer{}, failed(err, notRead, id)
	}
	turns := []wire.Turn{}
	if in.IncludeTurns {
		turns = f.Turns()
	}
	return wire.ThreadAnswer{Thread: c.s.threadOf(f, turns)}, nil
}

// opened is the answer to a request that follows a thread.
func (s *Server) opened(f *items.Fold, turns []wire.Turn) wire.ThreadOpened {
	set := items.Settings(f.Settings)
	return wire.ThreadOpened{
		Thread: s.threadOf(f, turns), Model: set.Model, ModelProvider: set.ModelProvider, Cwd: set.Cwd,
		RuntimeWorkspaceRoots: []string{set.Cwd}, InstructionSources: []string{}, ApprovalPolicy: set.ApprovalPolicy,
		ApprovalsReviewer: set.ApprovalsReviewer, Sandbox: set.SandboxPolicy, ReasoningEffort: set.Effort, Seq: uint64(f.Seq),
	}
}

func (s *Server) threadOf(f *items.Fold, turns []wire.Turn) wire.Thread {
	t := s.newThread(f.ID)
	t.Preview, t.Ephemeral, t.ModelProvider, t.Cwd = f.Preview, f.Settings.Ephemeral, f.Settings.Provider, f.Settings.Cwd
	t.Model, t.ReasoningEffort, t.Name, t.Turns = orNull(f.Settings.Model), orNull(f.Settings.Effort), orNull(f.Title), turns
	t.Status, t.ReturnedInput = f.Status(), f.Returned()
	t.UpdatedAt = f.Updated.Unix()
	if f.Forked != nil {
		t.ForkedFromID = orNull(string(f.Forked.ID))
	}
	return t
}

// newThread is what all threads have in common.
func (s *Server) newThread(id p.ConversationID) wire.Thread {
	at, ok := id.Time().Unix(), true
	return wire.Thread{
		ID: string(id), SessionID: string(id), HistoryMode: "legacy", CreatedAt: at, UpdatedAt: at, RecencyAt: &at,
		CLIVersion: s.o.Version, Source: "cli", CanAcceptInput: &ok, Turns: []wire.Turn{},
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// threadUnsubscribe ends the subscription. After its answer nothing more of the thread is sent.
func (c *conn) threadUnsubscribe(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadName) (wire.Unsubscribed, error) {
	id, err := parse(in.ThreadID, notFound)
	if err != nil {
		return wire.Unsubscribed{}, err
	}
	if sub := c.follows(id); sub != nil && sub.t.following.CompareAndSwap(sub, nil) {
		sub.cancel()
		leave, err := sub.t.enter(ctx) // what was being sent has been sent
		if err != nil {
			return wire.Unsubscribed{}, err
		}
		leave()
		return wire.Unsubscribed{Status: "unsubscribed"}, nil
	}
	if c.s.isLoaded(id) {
		return wire.Unsubscribed{Status: "notSubscribed"}, nil
	}
	return wire.Unsubscribed{Status: "notLoaded"}, nil
}
