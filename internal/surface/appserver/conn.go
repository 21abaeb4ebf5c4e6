package appserver

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A conn is a connection.
type conn struct {
	s      *Server
	rpc    *jsonrpc.Conn
	kind   Kind
	life   context.Context // of what it does by itself
	end    context.CancelFunc
	optOut atomic.Pointer[map[string]bool] // notifications that are not wanted; nil before initialize
	late   chan items.Note                 // what later has to send; room for maxLate

	interrupts follow.Interrupts

	mu     sync.Mutex
	warned map[string]bool              // members that were named in a warning; guarded by mu
	open   map[p.ConversationID]*thread // guarded by mu
}

// The bounds of a connection: bytes that wait for a client, requests that are under way, bytes of a message, notifications
// that no caller waits for, and unknown members that are named in warnings.
const (
	maxQueue = 1 << 20
	maxCalls = 128
	maxLine  = 64 << 20
	maxLate  = 1000
	maxNamed = 1000
)

// codeOverloaded is the code for a request that comes when there is too much to do.
const codeOverloaded = -32001

func (s *Server) newConn(ctx context.Context, kind Kind) *conn {
	c := &conn{s: s, kind: kind, late: make(chan items.Note, maxLate), warned: map[string]bool{}, open: map[p.ConversationID]*thread{}}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.rpc = jsonrpc.New(ctx, jsonrpc.Options{
		Methods: c.methods(), Plain: true, Reply: c.reply, Log: s.o.Log, Panicked: s.o.Panicked,
		MaxQueue: maxQueue, MaxCalls: maxCalls, MaxLine: maxLine,
		Full: jsonrpc.Errorf(codeOverloaded, "Server overloaded; retry later."),
	})
	return c
}

func (c *conn) close() { c.end() }

// notify sends a notification, unless the client does not want it. It waits while too much waits for the client.
func (c *conn) notify(ctx context.Context, method string, params any) error {
	if out := c.optOut.Load(); out == nil || (*out)[method] {
		return nil
	}
	return c.rpc.Notify(ctx, method, params)
}

// later sends a notification without waiting, in the order of the calls. A client that has not read very many of them gets no more.
func (c *conn) later(method string, params any) {
	select {
	case c.late <- items.Note{Method: method, Params: params}:
	default:
	}
}

// sendLate sends what later was given, until the client will say nothing more.
func (c *conn) sendLate() {
	for {
		select {
		case n := <-c.late:
			_ = c.notify(c.life, n.Method, n.Params) // if it fails the client has gone
		case <-c.rpc.Ending().Done():
			return
		}
	}
}

// remark warns about what has no effect.
func (c *conn) remark(id p.ConversationID, remarks []string) {
	var thread *string
	if name := string(id); name != "" {
		thread = &name
	}
	for _, r := range remarks {
		c.later("warning", wire.Warning{ThreadID: thread, Message: r})
	}
}

var (
	errNotInitialized = jsonrpc.Errorf(jsonrpc.CodeRequest, "Not initialized")
	errInitialized    = jsonrpc.Errorf(jsonrpc.CodeRequest, "Already initialized")
)

func refuse(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeRequest, format, args...)
}

func badParams(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeParams, format, args...)
}

func (c *conn) initialize(_ context.Context, _ *jsonrpc.Request, in wire.Initialize) (wire.Initialized, error) {
	out := map[string]bool{}
	if in.Capabilities != nil {
		for _, name := range in.Capabilities.OptOut {
			out[name] = true
		}
	}
	if !c.optOut.CompareAndSwap(nil, &out) {
		return wire.Initialized{}, errInitialized
	}
	return wire.Initialized{
		UserAgent: fmt.Sprintf("%s/%s (fermata; %s %s)", in.ClientInfo.Name, c.s.o.Version, runtime.GOOS, runtime.GOARCH),
		CodexHome: c.s.o.Home, PlatformFamily: "unix", PlatformOS: runtime.GOOS,
	}, nil
}

// handle makes a method that needs an initialized connection, and warns once of each unknown member.
func handle[P, R any](c *conn, name string, fn func(context.Context, *jsonrpc.Request, P) (R, error)) jsonrpc.Method {
	params := reflect.TypeFor[P]()
	return jsonrpc.Handle(name, func(ctx context.Context, r *jsonrpc.Request, in P) (R, error) {
		if c.optOut.Load() == nil {
			var none R
			return none, errNotInitialized
		}
		for _, member := range jsonrpc.Unknown(r.Params, params) {
			if c.firstUse(name + " " + member) {
				c.remark("", []string{fmt.Sprintf("%s: the member %q is unknown here and has no effect", name, member)})
			}
		}
		return fn(ctx, r, in)
	})
}

// firstUse reports whether an unknown member is used for the first time, and remembers it.
func (c *conn) firstUse(member string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.warned[member] || len(c.warned) >= maxNamed {
		return false
	}
	c.warned[member] = true
	return true
}

// A thread is what a connection remembers of a conversation.
type thread struct {
	id    p.ConversationID
	group *follow.Group // its followers of this connection

	// gate has room for one: whoever is in it may answer and notify. So the answer to a request that starts a turn
	// comes before what the turn does.
	gate chan struct{}

	following atomic.Pointer[subscription] // nil: the client does not follow it
	used      atomic.Pointer[chan struct{}]
}

// thread returns what the connection remembers of a conversation.
func (c *conn) thread(id p.ConversationID) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.open[id]
	if t == nil {
		t = &thread{id: id, group: follow.New(c.s.o.Engine, id), gate: make(chan struct{}, 1)}
		t.group.Panicked = c.s.o.Panicked
		t.use()
		c.open[id] = t
	}
	return t
}

// follows returns the subscription by which the client follows a conversation; nil if it does not.
func (c *conn) follows(id p.ConversationID) *subscription {
	c.mu.Lock()
	t := c.open[id]
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.following.Load()
}

// use says that a client uses the conversation: if it was closed it is open again.
func (t *thread) use() {
	next := make(chan struct{})
	if used := t.used.Swap(&next); used != nil {
		close(*used)
	}
}

// enter waits for the gate. The returned function leaves it.
func (t *thread) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t.gate <- struct{}{}:
		return func() { <-t.gate }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// absolute returns a path of a client's, which may be relative to where the server works.
func (s *Server) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.o.Cwd, path)
}
