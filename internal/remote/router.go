package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Choosing engine runs conversations in this process if they are free, and joins the
// process that has them open if not. When that process ends, it takes them over.
// Its clients do not notice which is the case. New conversations are its own.
type Choosing struct {
	*engine.Local
	o    Options
	host *Host         // nil if nobody can join this process
	wait time.Duration // how long an owner is tried that cannot be reached

	serving sync.Mutex // held while the process that serves is looked for

	mu        sync.Mutex
	owners    map[string]*Engine                  // by address; guarded by mu
	followers map[p.ConversationID]map[*place]any // guarded by mu
	closed    bool                                // guarded by mu
	moved     func(p.ConversationID, Move)        // nil if nobody wants to know; guarded by mu
}

var _ engine.Engine = (*Choosing)(nil)

// A place is where a follower reads a conversation.
type place struct {
	address string // empty for this process
	move    context.CancelCauseFunc
}

// errMoved says that a conversation is now somewhere else than where it is followed.
var errMoved = errors.New("the conversation is open somewhere else now")

// NewChoosing makes an engine of a local one. Its store must return a *LockedError
// at once for an owner that can be joined. By host others join the local one; it
// may be nil, and is closed by Shutdown.
func NewChoosing(local *engine.Local, host *Host, o Options) *Choosing {
	if host != nil {
		host.serve(local)
	}
	return &Choosing{Local: local, host: host, o: o, wait: ownerWait, owners: map[string]*Engine{}, followers: map[p.ConversationID]map[*place]any{}}
}

// How long, and how often, an owner is tried that has the lock and cannot be
// reached: it is ending, or has only begun.
const (
	ownerWait  = 20 * time.Second
	ownerRetry = 50 * time.Millisecond
)

// use calls f with the engine that has the conversation open, or with the first one if nobody
// has. f may be called again when it is not known what became of it.
func (c *Choosing) use(ctx context.Context, id p.ConversationID, f func(engine.Engine) error) error {
	wait := c.wait
	var failed time.Time // when it first did: the owner may not have responded for long before
	for {
		e, address, err := c.first(ctx)
		if err != nil {
			return err
		}
		err = f(e)
		if locked := c.joinable(err); locked != nil {
			wait = c.wait + locked.Lease
			joined, dialed := c.join(ctx, locked.Owner)
			if final(dialed) {
				return dialed
			}
			if dialed == nil {
				if err = f(joined); err == nil {
					address = addressOf(locked.Owner)
				}
			}
		} else if address == "" && err != nil {
			return err
		}
		if err == nil {
			c.note(id, address)
			return nil
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		if !c.elsewhere(err) || time.Since(failed) > wait {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// elsewhere reports whether an error of another process says that the conversation may now be open
// somewhere else.
func (c *Choosing) elsewhere(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrLeaving) || errors.Is(err, engine.ErrClosed) || c.joinable(err) != nil
}

// first returns the engine that opens what nobody has open: this one, or that of the
// process which serves, with its address.
func (c *Choosing) first(ctx context.Context) (engine.Engine, string, error) {
	if c.o.Serve == nil {
		return c.Local, "", nil
	}
	c.serving.Lock() // one is started at a time
	defer c.serving.Unlock()
	if e := c.connected(serveAddress); e != nil {
		return e, serveAddress, nil
	}
	e, err := c.o.Serve(ctx, c.o)
	if err != nil {
		return nil, "", err
	}
	e, err = c.keep(serveAddress, e)
	return e, serveAddress, err
}

// serveAddress stands for the address of the process that serves, which is another one when that has
// been started again.
const serveAddress = "serve"

// joinable returns the error that names an owner which can be joined.
func (c *Choosing) joinable(err error) *engine.LockedError {
	var locked *engine.LockedError
	if !c.o.Alone && errors.As(err, &locked) && locked.Joinable() {
		return locked
	}
	return nil
}

// final reports whether it is no use to try again.
func final(err error) bool {
	return errors.As(err, new(*UnresponsiveError)) || errors.As(err, new(*VersionError)) || errors.Is(err, ErrUser) || errors.Is(err, context.Canceled) || errors.Is(err, engine.ErrClosed)
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(ownerRetry):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connected returns the connection to an address, if there is one.
func (c *Choosing) connected(address string) *Engine {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.owners[address]; e != nil && !e.lost() {
		return e
	}
	return nil
}

// keep keeps a new connection. If there is one already, that is returned.
func (c *Choosing) keep(address string, e *Engine) (*Engine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go e.Close() // at once
		return nil, engine.ErrClosed
	}
	if other := c.owners[address]; other != nil && !other.lost() { // somebody else was faster
		go e.Close() // at once
		return other, nil
	}
	c.owners[address] = e
	return e, nil
}

// addressOf names the connection to an owner.
func addressOf(o journal.Owner) string { return cmp.Or(o.Node, o.Address) }

// join returns the connection to an owner.
func (c *Choosing) join(ctx context.Context, owner journal.Owner) (*Engine, error) {
	if e := c.connected(addressOf(owner)); e != nil {
		return e, nil
	}
	e, err := c.dial(ctx, owner)
	if errors.As(err, new(*UnresponsiveError)) {
		return nil, fmt.Errorf("join: %w", &UnresponsiveError{PID: owner.PID})
	}
	if err != nil {
		return nil, err
	}
	return c.keep(addressOf(owner), e)
}

// dial connects to an owner: by its socket if that is one of this home, else by its node.
func (c *Choosing) dial(ctx context.Context, owner journal.Owner) (*Engine, error) {
	if owner.Node == "" || owner.IsNear() && filepath.Dir(owner.Address) == c.o.Dir {
		e, err := Dial(ctx, owner.Address, c.o)
		if err == nil || owner.Node == "" || final(err) {
			return e, err
		}
	}
	return Reach(ctx, owner, c.o)
}

// Reach connects to an owner that accepts clients on any machine.
func Reach(ctx context.Context, owner journal.Owner, o Options) (*Engine, error) {
	conn, err := o.Reach(ctx, owner.Node)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", owner, err)
	}
	o.Brings = nil
	e, err := Connect(ctx, conn, o)
	if errors.As(err, new(*UnresponsiveError)) { // its lease ends, if it has not gone
		return nil, fmt.Errorf("join %s: %w", owner, ErrLost)
	}
	return e, err
}

// ErrNotOpen says that no process has a conversation open.
var ErrNotOpen = errors.New("no process has this conversation open")

// Join returns the engine of the process that has a conversation open. It belongs to
// this one.
func (c *Choosing) Join(ctx context.Context, id p.ConversationID) (*Engine, error) {
	owner, open, err := c.Owner(ctx, id)
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, ErrNotOpen
	}
	if !owner.Joinable() {
		return nil, &engine.LockedError{Owner: owner}
	}
	return c.join(ctx, owner)
}

// note moves the followers of a conversation to where it is open.
func (c *Choosing) note(id p.ConversationID, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers[id] {
		if f.address != address {
			f.move(errMoved)
		}
	}
}

// Joined returns the process that has a conversation open which is followed
// here, or 0 if it is this one.
func (c *Choosing) Joined(id p.ConversationID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers[id] {
		if e := c.owners[f.address]; f.address != "" && e != nil {
			return e.PID()
		}
	}
	return 0
}

// A Move says that the process which had a conversation open is gone, and which one has it open now.
type Move struct {
	From int  // the number of the process that is gone
	To   int  // that of the next one; 0 is this one
	Died bool // it did not leave in good order
}

// OnMove sets what is called when a conversation that is followed here moves because its process is gone, before
// anything that comes from the next one is given. It may block; then the follower waits.
func (c *Choosing) OnMove(f func(p.ConversationID, Move)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = f
}

// reportMove reports a move.
func (c *Choosing) reportMove(id p.ConversationID, m Move) {
	c.mu.Lock()
	f := c.moved
	c.mu.Unlock()
	if f != nil {
		f(id, m)
	}
}

// Resume implements engine.Engine.
func (c *Choosing) Resume(ctx context.Context, id p.ConversationID) (snap engine.Snapshot, err error) {
	err = c.use(ctx, id, func(e engine.Engine) (err error) {
		snap, err = e.Resume(ctx, id)
		return err
	})
	return snap, err
}

// Submit implements engine.Engine. If the owner ends before it answers, the op is submitted to
// the next one, which knows by its name whether it was recorded.
func (c *Choosing) Submit(ctx context.Context, id p.ConversationID, op p.Op) (receipt p.Receipt, err error) {
	named := ctx
	if from := engine.ClientOf(ctx); from.Op == "" {
		from.Op = rand.Text()[:opLength]
		named = engine.WithClient(ctx, from)
	}
	sent := false // it may have been recorded
	err = c.use(ctx, id, func(e engine.Engine) (err error) {
		ctx := ctx
		if _, own := e.(*engine.Local); !own || sent {
			ctx, sent = named, true
		}
		receipt, err = e.Submit(ctx, id, op)
		return err
	})
	return receipt, err
}

// opLength is how long the names of ops are: those of one conversation that were recorded last have to differ.
const opLength = 12

// Leave says that this process is about to end: other processes can no longer begin
// anything here, and wait until they can take over.
func (c *Choosing) Leave() {
	if c.host != nil {
		c.host.leave()
	}
}

// Shutdown closes what is open here, and leaves what is open elsewhere.
func (c *Choosing) Shutdown(ctx context.Context) error {
	c.Leave()
	if c.host != nil {
		defer c.host.close()
	}
	err := c.Local.Shutdown(ctx)
	c.mu.Lock()
	c.closed = true
	owners := c.owners
	c.owners = nil
	c.mu.Unlock()
	for _, e := range owners {
		e.Close()
	}
	return err
}

// Subscribe implements engine.Engine.
func (c *Choosing) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return c.Attach(ctx, id, after, nil)
}

// Attach implements engine.Engine.
func (c *Choosing) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		f := &follower{c: c, id: id, after: after, live: live, seen: map[p.ItemID]int64{}, yield: yield}
		if err := f.run(ctx); err != nil {
			yield(p.Event{}, err)
		}
	}
}

// A follower gives one client the events of a conversation, wherever it is open.
type follower struct {
	c     *Choosing
	id    p.ConversationID
	after p.Cursor           // the last event that was given
	live  func()             // nil when it was called
	seen  map[p.ItemID]int64 // how much of each open item was given
	gone  *Move              // of the owner before, until there is another; nil if that is not gone
	yield func(p.Event, error) bool
}

// errStopped says that the client wants nothing more.
var errStopped = errors.New("the client has left")

// run gives events until the client has left, then nil.
func (f *follower) run(ctx context.Context) error {
	began, wait := time.Now(), f.c.wait // when the owner was last there, and how long it may be away
	for {
		e, address, err := f.c.first(ctx)
		if err != nil {
			return err
		}
		err = f.read(ctx, e, address)
		read := f.c.joinable(err) == nil
		if locked := f.c.joinable(err); locked != nil {
			wait = f.c.wait + locked.Lease
			joined, dialed := f.c.join(ctx, locked.Owner)
			if final(dialed) {
				return dialed
			}
			if read = dialed == nil; read {
				address = addressOf(locked.Owner)
				err = f.read(ctx, joined, address)
			}
		}
		if read {
			began = time.Now()
		}
		switch {
		case errors.Is(err, errMoved), read && f.taken(ctx, err, address):
			continue
		case read && (address == "" || !errors.Is(err, ErrLost) && !errors.Is(err, ErrLeaving) && f.c.joinable(err) == nil):
			return ended(err)
		case time.Since(began) > wait:
			return err
		}
		if address == serveAddress && errors.Is(err, ErrLeaving) {
			if err := f.awaitServe(ctx); err != nil {
				return err
			}
			began = time.Now()
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// taken reports whether a conversation was closed where it was followed because another process has it open now.
func (f *follower) taken(ctx context.Context, err error, address string) bool {
	if address == "" || !errors.Is(err, engine.ErrClosed) || errors.Is(err, ErrLeaving) {
		return false
	}
	owner, open, err := f.c.Owner(ctx, f.id)
	return err == nil && open && addressOf(owner) != address && owner.Joinable()
}

// serveLookAgain is how often a follower looks whether there is a process again that serves.
const serveLookAgain = 500 * time.Millisecond

// awaitServe returns when a process serves again, or another one has the conversation open.
func (f *follower) awaitServe(ctx context.Context) error {
	for !f.c.o.Serving() {
		if _, open, err := f.c.Owner(ctx, f.id); err != nil || open {
			return err
		}
		select {
		case <-time.After(serveLookAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// read gives what one engine knows, and returns why it ends.
func (f *follower) read(ctx context.Context, e engine.Engine, address string) error {
	ctx, move := context.WithCancelCause(ctx)
	defer move(nil)
	here := &place{address, move}
	f.c.enter(f.id, here)
	defer f.c.exit(f.id, here)
	live := func() {
		f.arrive(e)
		if f.live != nil {
			f.live()
			f.live = nil
		}
	}
	for ev, err := range e.Attach(ctx, f.id, f.after, live) {
		if err != nil {
			f.leave(e, err)
			if errors.Is(context.Cause(ctx), errMoved) {
				return errMoved // the journal only says that it was cancelled
			}
			return err
		}
		f.arrive(e)
		if ev, ok := f.fresh(ev); ok && !f.yield(ev, nil) {
			return errStopped
		}
	}
	return errStopped
}

// leave notes that the process of an engine is gone.
func (f *follower) leave(e engine.Engine, err error) {
	if from, ok := e.(*Engine); ok && f.gone == nil {
		left := errors.Is(err, ErrLeaving) || from.left.Load()
		if left || from.lost() {
			f.gone = &Move{From: from.PID(), Died: !left}
		}
	}
}

// arrive reports the next one.
func (f *follower) arrive(e engine.Engine) {
	if f.gone == nil {
		return
	}
	move := *f.gone
	f.gone = nil
	if to, ok := e.(*Engine); ok {
		move.To = to.PID()
	}
	f.c.reportMove(f.id, move)
}

// fresh returns what was not yet given of an event: another owner gives the text of
// open items from their beginning.
func (f *follower) fresh(ev p.Event) (p.Event, bool) {
	if ev.Seq > 0 {
		f.after = ev.Seq
	}
	switch b := ev.Body.(type) {
	case *p.Delta:
		end := b.Offset + int64(len(b.Text))
		skip := f.seen[b.Item] - b.Offset
		if skip >= int64(len(b.Text)) {
			return ev, len(b.Text) == 0
		}
		f.seen[b.Item] = end
		if skip > 0 {
			rest := *b
			rest.Offset, rest.Text = b.Offset+skip, b.Text[skip:]
			ev.Body = &rest
		}
	case *p.TurnEnded:
		for item := range f.seen {
			if item.Turn == ev.Turn {
				delete(f.seen, item)
			}
		}
	case *p.BackgroundEnded:
		delete(f.seen, b.ID.Item())
	}
	return ev, true
}

func (c *Choosing) enter(id p.ConversationID, at *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers[id] == nil {
		c.followers[id] = map[*place]any{}
	}
	c.followers[id][at] = nil
}

func (c *Choosing) exit(id p.ConversationID, at *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.followers[id], at); len(c.followers[id]) == 0 {
		delete(c.followers, id)
	}
}
