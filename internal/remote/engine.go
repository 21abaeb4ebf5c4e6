package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Engine is the engine of another process. When that has gone, everything fails
// with ErrLost.
type Engine struct {
	rpc     *jsonrpc.Conn
	conn    io.Closer
	welcome welcome
	streams atomic.Int64  // the number of the last one
	left    atomic.Bool   // the owner has said that it is about to end
	ended   chan struct{} // closed when the connection has ended
	bound   time.Duration // how long the owner may be silent
	pid     int           // the process at the other end of a socket; 0 if that is not known
}

var _ engine.Engine = (*Engine)(nil)

// Options are what a client says of itself, and how long it waits.
type Options struct {
	Client  string // its name, for people
	Program string // the version of its program
	Looks   bool   // it only looks what the owner has open, and is no client for which an owner keeps running

	// Brings, if it is not nil, returns JSON that the owner is given for the turns which this client starts,
	// such as its environment: see engine.Config.ForClient. It is never recorded.
	Brings func() (json.RawMessage, error)

	Alone bool // for a Router: other processes are not joined

	// Dir, for a Router, is where the sockets of this home are. An owner that accepts clients on any machine
	// and has its socket elsewhere is joined by Reach, which connects to such an owner. It is given nothing of
	// what Brings returns: that is of use on this machine only, and secret.
	Dir   string
	Reach func(ctx context.Context, node string) (io.ReadWriteCloser, error)

	// Serve, for a Router, connects to the process that opens what no process has open. If it is
	// nil, this one does.
	Serve func(context.Context, Options) (*Engine, error)

	// Serving reports whether there is such a process. Those who only follow a conversation do not
	// have it started again when it has ended in good order.
	Serving func() bool

	// Bound is how long the owner may not respond at all; 0 is two seconds. After it, calls
	// fail with an [UnresponsiveError]. An owner whose process is known to run has slowFactor times as long: the
	// machine is busy.
	Bound time.Duration
}

// slowFactor times the bound is how long an owner may not respond whose process runs.
const slowFactor = 15

// An UnresponsiveError says that the owner's process is there and does not
// respond: it is stopped (SIGSTOP, Ctrl-Z), or the machine is very busy.
type UnresponsiveError struct {
	PID  int  // 0 if it is not known
	Sent bool // it was sent something to do, and may do that if it continues
}

func (e *UnresponsiveError) Error() string {
	text := "the process"
	if e.PID != 0 {
		text = fmt.Sprintf("process %d", e.PID)
	}
	text += " has this conversation open and does not respond; it may be stopped"
	if e.Sent {
		text += ", and may still do this when it continues"
	}
	return text
}

// Connect makes an engine of a connection to a Server. ctx gives values and bounds only
// the beginning. The caller calls Close, which closes conn.
func Connect(ctx context.Context, conn io.ReadWriteCloser, o Options) (*Engine, error) {
	return connect(ctx, conn, 0, o)
}

func connect(ctx context.Context, conn io.ReadWriteCloser, pid int, o Options) (*Engine, error) {
	if o.Bound == 0 {
		o.Bound = 2 * time.Second
	}
	e := &Engine{conn: conn, ended: make(chan struct{}), bound: o.Bound, pid: pid}
	e.rpc = jsonrpc.New(ctx, jsonrpc.Options{Cancel: cancelMethod, ReadToEnd: true, Methods: []jsonrpc.Method{ // it may have said that it leaves
		jsonrpc.Listen(leavingMethod, func(context.Context, nothing) { e.left.Store(true) }),
	}})
	go func() { // ends with the connection
		defer close(e.ended)
		_ = e.rpc.Serve(context.WithoutCancel(ctx), conn, conn) // calls fail with ErrLost
		conn.Close()
	}()
	limited, cancel := e.limit(ctx, pid)
	defer cancel()
	if err := e.greet(limited, o); err != nil {
		e.Close()
		return nil, fmt.Errorf("join: %w", fromRPC(err))
	}
	return e, nil
}

// limit returns a context that ends with an UnresponsiveError when the other process has had the time that it may not
// respond; pid is its number for people. The caller calls cancel.
func (e *Engine) limit(ctx context.Context, pid int) (limited context.Context, cancel func()) {
	limited, end := context.WithCancelCause(ctx)
	go func() { // ends with limited
		for n := 1; ; n++ {
			select {
			case <-time.After(e.bound):
			case <-limited.Done():
				return
			}
			if n == slowFactor || e.pid == 0 || !runs(e.pid) {
				end(&UnresponsiveError{PID: pid})
				return
			}
		}
	}()
	return limited, func() { end(nil) }
}

// PID is that of the other process.
func (e *Engine) PID() int { return e.welcome.PID }

// greet says who we are, and learns who the other process is.
func (e *Engine) greet(ctx context.Context, o Options) error {
	h := hello{Oldest: oldestVersion, Newest: newestVersion, Client: o.Client, Program: o.Program, Looks: o.Looks}
	if o.Brings != nil {
		var err error
		if h.Brings, err = o.Brings(); err != nil {
			return err
		}
	}
	answer, err := e.rpc.Call(ctx, "hello", h)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, &e.welcome)
}

// Close ends the connection. What the other process does goes on.
func (e *Engine) Close() {
	e.conn.Close()
	<-e.ended
}

// lost reports whether the connection has ended.
func (e *Engine) lost() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// Ended is closed when the connection has ended.
func (e *Engine) Ended() <-chan struct{} { return e.ended }

// call asks the other process. If that takes long, it is asked whether it responds.
func call[R any](ctx context.Context, e *Engine, method string, params any) (result R, err error) {
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(e.bound, func() { e.watch(ctx, cancel) }) // ends with ctx
	defer slow.Stop()
	answer, err := e.rpc.Call(ctx, method, params)
	if err != nil {
		return result, e.failure(err)
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return result, fmt.Errorf("decode the answer to %s: %w", method, err)
	}
	return result, nil
}

// failure is the error of a call. Whether a connection ended in good order is known when it has.
func (e *Engine) failure(err error) error {
	err = fromRPC(err)
	if !errors.Is(err, ErrLost) {
		return err
	}
	<-e.ended
	if e.left.Load() {
		return errLeft
	}
	return err
}

// errLeft is ErrLost after the owner has said that it leaves.
var errLeft = fmt.Errorf("%w: %w", ErrLeaving, ErrLost)

// watch gives up a call when the other process does not respond.
func (e *Engine) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	for ctx.Err() == nil {
		limited, cancel := e.limit(ctx, e.welcome.PID)
		_, err := e.rpc.Call(limited, "ping", nothing{})
		cancel()
		if err != nil {
			if errors.As(err, new(*UnresponsiveError)) {
				giveUp(err)
			}
			return
		}
		select {
		case <-time.After(e.bound):
		case <-ctx.Done():
		}
	}
}

// act is call without a result.
func (e *Engine) act(ctx context.Context, method string, params any) error {
	_, err := call[nothing](ctx, e, method, params)
	return err
}

// Create implements engine.Engine.
func (e *Engine) Create(ctx context.Context, s p.Settings) (p.ConversationID, error) {
	if err := engine.ValidSettings(s); err != nil { // here too: what is no JSON could not be sent
		return "", fmt.Errorf("create conversation: %w", err)
	}
	return call[p.ConversationID](ctx, e, "create", createParams{s, engine.NewIDOf(ctx)})
}

// Resume implements engine.Engine.
func (e *Engine) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	return call[engine.Snapshot](ctx, e, "resume", about{id})
}

// Submit implements engine.Engine.
func (e *Engine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	op, err := engine.ValidOp(op) // here too: what is no JSON could not be sent
	if err != nil {
		return p.Receipt{}, err
	}
	from := engine.ClientOf(ctx)
	receipt, err := call[p.Receipt](ctx, e, "submit", submitParams{id, p.OpJSON{Op: op}, from.Op, from.Name})
	if silent := (*UnresponsiveError)(nil); errors.As(err, &silent) {
		return receipt, &UnresponsiveError{PID: silent.PID, Sent: true}
	}
	return receipt, err
}

// Fork implements engine.Engine.
func (e *Engine) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	return call[p.ConversationID](ctx, e, "fork", forkParams{id, upTo, engine.NewIDOf(ctx)})
}

// List implements engine.Engine.
func (e *Engine) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	return call[engine.Page](ctx, e, "list", listParams{o})
}

// Archive implements engine.Engine.
func (e *Engine) Archive(ctx context.Context, id p.ConversationID) error {
	return e.act(ctx, "archive", about{id})
}

// Unarchive implements engine.Engine.
func (e *Engine) Unarchive(ctx context.Context, id p.ConversationID) error {
	return e.act(ctx, "unarchive", about{id})
}

// Delete implements engine.Engine.
func (e *Engine) Delete(ctx context.Context, id p.ConversationID) error {
	return e.act(ctx, "delete", about{id})
}

// Release implements engine.Engine.
func (e *Engine) Release(ctx context.Context, id p.ConversationID) error {
	return e.act(ctx, "release", about{id})
}

// Shutdown leaves the other process. What that does goes on.
func (e *Engine) Shutdown(context.Context) error {
	e.Close()
	return nil
}

// Live returns the state of every conversation that the other process has open.
func (e *Engine) Live(ctx context.Context) ([]p.Snapshot, error) {
	return call[[]p.Snapshot](ctx, e, "live", nothing{})
}

// Subscribe implements engine.Engine.
func (e *Engine) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return e.Attach(ctx, id, after, nil)
}

// Attach implements engine.Engine.
func (e *Engine) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		if err := e.follow(ctx, id, after, live, yield); err != nil {
			yield(p.Event{}, err)
		}
	}
}

// follow gives events until yield returns false, then nil.
func (e *Engine) follow(ctx context.Context, id p.ConversationID, after p.Cursor, live func(), yield func(p.Event, error) bool) error {
	number := e.streams.Add(1)
	if err := e.act(ctx, "attach", attachParams{id, after, number}); err != nil {
		return err
	}
	defer func() { // without waiting for it: the other process may not respond
		_, _ = e.rpc.Ask("detach", streamParams{number}, func(json.RawMessage, error) {}) // it ends with the connection as well
	}()
	for {
		answer, err := e.rpc.Call(ctx, "next", streamParams{number})
		if err != nil {
			return e.failure(err)
		}
		var b batch
		if err := json.Unmarshal(answer, &b); err != nil {
			return fmt.Errorf("decode events: %w", err)
		}
		if more, err := b.give(live, yield); err != nil || !more {
			return err
		}
	}
}

// give passes on a batch, and reports false when no more is wanted.
func (b batch) give(live func(), yield func(p.Event, error) bool) (bool, error) {
	for i := 0; ; i++ {
		if b.Live != nil && *b.Live == i && live != nil {
			live()
		}
		if i == len(b.Events) {
			break
		}
		var event p.Event
		if err := json.Unmarshal(b.Events[i], &event); err != nil {
			return false, fmt.Errorf("decode event: %w", err)
		}
		if !yield(event, nil) {
			return false, nil
		}
	}
	if b.Error != nil {
		return false, b.Error.decode()
	}
	return true, nil
}
