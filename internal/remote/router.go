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

// A Router runs conversations in this process if they are free, and joins the
// process that has them open if not. When that process ends, it takes them over.
// Its clients do not notice which is the case. New conversations are its own.
type Router struct {
	Local *engine.Local // of this process
	o     Options
	host  *Host         // nil if other processes cannot join this one
	wait  time.Duration // how long an owner is tried that cannot be reached

	serving sync.Mutex // held while the process that serves is looked for

	mu        sync.Mutex
	owners    map[string]*Engine                  // by address; guarded by mu
	followers map[p.ConversationID]map[*place]any // guarded by mu
	closed    bool                                // guarded by mu
	moved     func(p.ConversationID, Move)        // may be nil; guarded by mu
}

var _ engine.Engine = (*Router)(nil)

// A place is where a follower reads a conversation.
type place struct {
	address string // empty for this process
	move    context.CancelCauseFunc
}

// errMoved says that a conversation is now somewhere else than where it is followed.
var errMoved = errors.New("the conversation is open somewhere else now")

// NewRouter makes an engine of a local one. Its store must return a *LockedError
// at once for an owner that can be joined. By host others join the local one; it
// may be nil, and is closed by Shutdown.
func NewRouter(local *engine.Local, host *Host, o Options) *Router {
	if host != nil {
		host.serve(local)
	}
	return &Router{Local: local, host: host, o: o, wait: ownerWait, owners: map[string]*Engine{}, followers: map[p.ConversationID]map[*place]any{}}
}

// How long, and how often, an owner is tried that has the lock and cannot be
// reached: it is ending, or has only begun.
const (
	ownerWait  = 20 * time.Second
	ownerRetry = 50 * time.Millisecond
)

// use calls f with the engine that has the conversation open, or with the first one if no process
// has. f may be called again when it is not known what became of it.
func (r *Router) use(ctx context.Context, id p.ConversationID, f func(engine.Engine) error) error {
	wait := r.wait
	var failed time.Time // when it first did: the owner may not have responded for long before
	for {
		e, address, err := r.first(ctx)
		if err != nil {
			return err
		}
		err = f(e)
		if locked := r.joinable(err); locked != nil {
			wait = r.wait + locked.Lease
			joined, dialed := r.join(ctx, locked.Owner)
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
			r.note(id, address)
			return nil
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		if !r.elsewhere(err) || time.Since(failed) > wait {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// elsewhere reports whether an error of another process says that the conversation may now be open
// somewhere else.
func (r *Router) elsewhere(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrLeaving) || errors.Is(err, engine.ErrClosed) || r.joinable(err) != nil
}

// first returns the engine that opens what no process has open: this one, or that of the
// process which serves, with its address.
func (r *Router) first(ctx context.Context) (engine.Engine, string, error) {
	if r.o.Serve == nil {
		return r.Local, "", nil
	}
	r.serving.Lock() // one is started at a time
	defer r.serving.Unlock()
	if e := r.connected(serveAddress); e != nil {
		return e, serveAddress, nil
	}
	e, err := r.o.Serve(ctx, r.o)
	if err != nil {
		return nil, "", err
	}
	e, err = r.keep(serveAddress, e)
	return e, serveAddress, err
}

// serveAddress stands for the address of the process that serves, which is another one when that has
// been started again.
const serveAddress = "serve"

// joinable returns the error that names an owner which can be joined.
func (r *Router) joinable(err error) *engine.LockedError {
	var locked *engine.LockedError
	if !r.o.Alone && errors.As(err, &locked) && locked.Joinable() {
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
func (r *Router) connected(address string) *Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.owners[address]; e != nil && !e.lost() {
		return e
	}
	return nil
}

// keep keeps a new connection. If there is one already, that is returned.
func (r *Router) keep(address string, e *Engine) (*Engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		go e.Close() // at once
		return nil, engine.ErrClosed
	}
	if other := r.owners[address]; other != nil && !other.lost() { // another caller was faster
		go e.Close() // at once
		return other, nil
	}
	r.owners[address] = e
	return e, nil
}

// addressOf names the connection to an owner.
func addressOf(o journal.Owner) string { return cmp.Or(o.Node, o.Address) }

// join returns the connection to an owner.
func (r *Router) join(ctx context.Context, owner journal.Owner) (*Engine, error) {
	if e := r.connected(addressOf(owner)); e != nil {
		return e, nil
	}
	e, err := r.dial(ctx, owner)
	if errors.As(err, new(*UnresponsiveError)) {
		return nil, fmt.Errorf("join: %w", &UnresponsiveError{PID: owner.PID})
	}
	if err != nil {
		return nil, err
	}
	return r.keep(addressOf(owner), e)
}

// dial connects to an owner: by its socket if that is one of this home, else by its node.
func (r *Router) dial(ctx context.Context, owner journal.Owner) (*Engine, error) {
	if owner.Node == "" || owner.IsNear() && filepath.Dir(owner.Address) == r.o.Dir {
		e, err := Dial(ctx, owner.Address, r.o)
		if err == nil || owner.Node == "" || final(err) {
			return e, err
		}
	}
	return Reach(ctx, owner, r.o)
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
func (r *Router) Join(ctx context.Context, id p.ConversationID) (*Engine, error) {
	owner, open, err := r.Owner(ctx, id)
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, ErrNotOpen
	}
	if !owner.Joinable() {
		return nil, &engine.LockedError{Owner: owner}
	}
	return r.join(ctx, owner)
}

// note moves the followers of a conversation to where it is open.
func (r *Router) note(id p.ConversationID, address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers[id] {
		if f.address != address {
			f.move(errMoved)
		}
	}
}

// Joined returns the process that has a conversation open which is followed
// here, or 0 if it is this one.
func (r *Router) Joined(id p.ConversationID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers[id] {
		if e := r.owners[f.address]; f.address != "" && e != nil {
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
func (r *Router) OnMove(f func(p.ConversationID, Move)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved = f
}

// reportMove reports a move.
func (r *Router) reportMove(id p.ConversationID, m Move) {
	r.mu.Lock()
	f := r.moved
	r.mu.Unlock()
	if f != nil {
		f(id, m)
	}
}

// Resume implements engine.Engine.
func (r *Router) Resume(ctx context.Context, id p.ConversationID) (snap engine.Snapshot, err error) {
	err = r.use(ctx, id, func(e engine.Engine) (err error) {
		snap, err = e.Resume(ctx, id)
		return err
	})
	return snap, err
}

// Submit implements engine.Engine. If the owner ends before it answers, the op is submitted to
// the next one, which knows by its name whether it was recorded.
func (r *Router) Submit(ctx context.Context, id p.ConversationID, op p.Op) (receipt p.Receipt, err error) {
	named := ctx
	if from := engine.ClientOf(ctx); from.Op == "" {
		from.Op = rand.Text()[:opLength]
		named = engine.WithClient(ctx, from)
	}
	sent := false // it may have been recorded
	err = r.use(ctx, id, func(e engine.Engine) (err error) {
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
func (r *Router) Leave() {
	if r.host != nil {
		r.host.leave()
	}
}

// Shutdown closes what is open here, and leaves what is open elsewhere.
func (r *Router) Shutdown(ctx context.Context) error {
	r.Leave()
	if r.host != nil {
		defer r.host.close()
	}
	err := r.Local.Shutdown(ctx)
	r.mu.Lock()
	r.closed = true
	owners := r.owners
	r.owners = nil
	r.mu.Unlock()
	for _, e := range owners {
		e.Close()
	}
	return err
}

// Subscribe implements engine.Engine.
func (r *Router) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return r.Attach(ctx, id, after, nil)
}

// Attach implements engine.Engine.
func (r *Router) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		f := &follower{router: r, id: id, after: after, live: live, seen: map[p.ItemID]int64{}, yield: yield}
		if err := f.run(ctx); err != nil {
			yield(p.Event{}, err)
		}
	}
}

func (r *Router) enter(id p.ConversationID, at *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.followers[id] == nil {
		r.followers[id] = map[*place]any{}
	}
	r.followers[id][at] = nil
}

func (r *Router) exit(id p.ConversationID, at *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.followers[id], at); len(r.followers[id]) == 0 {
		delete(r.followers, id)
	}
}
