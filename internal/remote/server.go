package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// The bounds of what clients can have a server do.
const (
	maxClients = 256
	maxCalls   = 1024      // of one client at once
	maxStreams = 512       // of one client
	maxLine    = 64 << 20  // images are sent in messages
	maxLines   = 128 << 20 // what long lines of all clients take at once
	helloBound = 5 * time.Second
)

// The bounds of those that have not said hello. What they send is the environment of a process at most.
const (
	maxStrangers  = 64
	strangerLine  = 4 << 20
	strangerLines = 16 << 20 // what long lines of all of them take at once
)

var (
	errGreeted = errors.New("hello was said already")
	errHello   = errors.New("hello comes first")
	errStreams = fmt.Errorf("more than %d streams at once", maxStreams)
	errStream  = errors.New("there is no such stream")
	errClients = fmt.Errorf("more than %d clients at once", maxClients)
)

// A Server lets other processes use an engine. Its methods may be called from
// any goroutine.
type Server struct {
	engine  engine.Engine
	program string // its version
	leaving atomic.Bool
	changed func() // called when clients come and go; may be nil

	Panicked panics.Log // keeps the traces of requests that panicked; set before anything is served; may be nil

	room         *jsonrpc.Room
	strangerRoom *jsonrpc.Room

	mu      sync.Mutex
	clients map[*client]context.CancelFunc // guarded by mu
	waiting []*client                      // those of clients that have not said hello, the oldest first; guarded by mu
	closed  bool                           // guarded by mu
	done    sync.WaitGroup                 // of clients
}

// NewServer makes a server of an engine. program is the version of this program, for people.
func NewServer(e engine.Engine, program string) *Server {
	return &Server{engine: e, program: program, room: jsonrpc.NewRoom(maxLines), strangerRoom: jsonrpc.NewRoom(strangerLines), clients: map[*client]context.CancelFunc{}}
}

// Leave says that the engine is about to be shut down: turns can no longer be started, and
// clients know that they can take over when their connection ends.
func (s *Server) Leave() {
	s.leaving.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		c.sayLeaving()
	}
}

// closeBound is how long the end waits for clients to read that we leave.
const closeBound = time.Second

// Close ends all connections and waits for what serves them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	clients := maps.Clone(s.clients)
	s.mu.Unlock()
	var notified sync.WaitGroup
	for c, end := range clients {
		notified.Go(func() {
			defer end()
			ctx, cancel := context.WithTimeout(c.ctx, closeBound)
			defer cancel()
			_ = c.rpc.Flush(ctx) // one who does not read is not waited for
		})
	}
	notified.Wait()
	s.done.Wait()
}

// ServeConn serves one client until its connection ends. It closes the connection.
func (s *Server) ServeConn(ctx context.Context, conn io.ReadWriteCloser) error {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &client{server: s, streams: map[int64]*stream{}}
	c.ctx = ctx
	c.rpc = jsonrpc.New(ctx, jsonrpc.Options{Methods: c.methods(), Cancel: cancelMethod, Panicked: s.Panicked, LineBounds: c.lineBounds, MaxCalls: maxCalls})
	if err := s.enter(c, cancel); err != nil {
		return err
	}
	defer s.exit(c)
	silent := time.AfterFunc(helloBound, func() {
		if !c.greeted.Load() {
			cancel()
		}
	})
	defer silent.Stop()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // also a write that is not taken
	defer stop()
	err := c.rpc.Serve(ctx, conn, conn)
	c.end()
	return err
}

func (s *Server) enter(c *client, cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrLeaving
	}
	if len(s.waiting) >= maxStrangers { // the oldest, so that those who stay silent keep no others out
		s.clients[s.waiting[0]]()
		s.waiting = s.waiting[1:]
	}
	s.waiting = append(s.waiting, c)
	s.clients[c] = cancel
	if s.leaving.Load() {
		c.sayLeaving()
	}
	s.done.Add(1)
	return nil
}

// admit makes one that has said hello a client, if there is room. It counts unless it only looks.
func (s *Server) admit(c *client, h hello) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, c)
	if i < 0 {
		return ErrLost // it was closed for another
	}
	if len(s.clients)-len(s.waiting) >= maxClients {
		return errClients
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if c.counts = !h.Looks; c.counts {
		s.notice()
	}
	return nil
}

func (s *Server) exit(c *client) {
	s.mu.Lock()
	delete(s.clients, c)
	s.waiting = slices.DeleteFunc(s.waiting, func(w *client) bool { return w == c })
	if c.counts {
		s.notice()
	}
	s.mu.Unlock()
	s.done.Done()
}

func (s *Server) notice() {
	if s.changed != nil {
		s.changed()
	}
}

// Clients is how many are connected and have not only come to look.
func (s *Server) Clients() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if c.counts {
			n++
		}
	}
	return n
}

// A client is one that is served.
type client struct {
	server  *Server
	ctx     context.Context // of its connection
	rpc     *jsonrpc.Conn
	name    string // of hello; set before greeted
	brings  any    // nil if nothing; set before greeted
	counts  bool   // it is one of Server.Clients; guarded by Server.mu
	greeted atomic.Bool
	leaving atomic.Bool // it was notified that we leave

	mu      sync.Mutex
	streams map[int64]*stream // by the client's numbers; guarded by mu
	running sync.WaitGroup    // of streams
}

// lineBounds are the bounds of its lines.
func (c *client) lineBounds() (int, *jsonrpc.Room) {
	if c.greeted.Load() {
		return maxLine, c.server.room
	}
	return strangerLine, c.server.strangerRoom
}

// sayLeaving sends the notification that we leave.
func (c *client) sayLeaving() {
	if !c.leaving.Swap(true) {
		c.rpc.NotifyNow(leavingMethod)
	}
}

// end ends the streams.
func (c *client) end() {
	c.mu.Lock()
	for _, st := range c.streams {
		st.cancel(ErrLost)
	}
	c.mu.Unlock()
	c.running.Wait()
}

// handle makes a method that is refused before hello, and whose errors keep
// their meaning.
func handle[P, R any](c *client, name string, fn func(context.Context, P) (R, error)) jsonrpc.Method {
	return jsonrpc.Handle(name, func(ctx context.Context, r *jsonrpc.Request, params P) (R, error) {
		var none R
		if !c.greeted.Load() {
			return none, errHello
		}
		result, err := fn(r.UntilEnd(ctx), params)
		switch {
		case err != nil && c.ctx.Err() != nil: // it is the connection that ends
			err = ErrLost
		case errors.Is(err, engine.ErrClosed) && c.server.leaving.Load():
			err = errors.Join(err, ErrLeaving)
		}
		return result, toRPC(err)
	})
}

// act makes a method without a result.
func act[P any](c *client, name string, fn func(context.Context, P) error) jsonrpc.Method {
	return handle(c, name, func(ctx context.Context, params P) (nothing, error) { return nothing{}, fn(ctx, params) })
}

func (c *client) methods() []jsonrpc.Method {
	e := c.server.engine
	return []jsonrpc.Method{
		jsonrpc.Handle("hello", func(_ context.Context, _ *jsonrpc.Request, h hello) (welcome, error) {
			version, err := agree(h)
			if err != nil {
				return welcome{}, toRPC(err)
			}
			if c.greeted.Load() {
				return welcome{}, errGreeted
			}
			c.name = h.Client
			if len(h.Brings) > 0 {
				c.brings = h.Brings
			}
			if err := c.server.admit(c, h); err != nil {
				return welcome{}, toRPC(err)
			}
			c.greeted.Store(true)
			return welcome{Version: version, PID: os.Getpid(), Program: c.server.program}, nil
		}),
		act(c, "ping", func(context.Context, nothing) error { return nil }),
		handle(c, "create", func(ctx context.Context, params createParams) (p.ConversationID, error) {
			return e.Create(engine.WithNewID(ctx, params.ID), params.Settings)
		}),
		handle(c, "resume", func(ctx context.Context, params about) (engine.Snapshot, error) { return e.Resume(ctx, params.ID) }),
		handle(c, "submit", c.submit),
		handle(c, "fork", func(ctx context.Context, params forkParams) (p.ConversationID, error) {
			return e.Fork(engine.WithNewID(ctx, params.Fork), params.ID, params.UpTo)
		}),
		handle(c, "list", func(ctx context.Context, params listParams) (engine.Page, error) { return e.List(ctx, params.Options) }),
		act(c, "archive", func(ctx context.Context, params about) error { return e.Archive(ctx, params.ID) }),
		act(c, "unarchive", func(ctx context.Context, params about) error { return e.Unarchive(ctx, params.ID) }),
		act(c, "delete", func(ctx context.Context, params about) error { return e.Delete(ctx, params.ID) }),
		act(c, "release", func(ctx context.Context, params about) error { return e.Release(ctx, params.ID) }),
		handle(c, "live", func(ctx context.Context, _ nothing) ([]p.Snapshot, error) {
			if l, ok := e.(interface {
				Live(context.Context) []p.Snapshot
			}); ok {
				return l.Live(ctx), nil
			}
			return nil, nil
		}),
		act(c, "attach", c.attach),
		handle(c, "next", c.next),
		act(c, "detach", c.detach),
	}
}

// submit hands an op on. A turn that was started now would only be interrupted.
func (c *client) submit(ctx context.Context, params submitParams) (p.Receipt, error) {
	switch params.Op.Op.(type) {
	case p.UserTurn, p.UserShell:
		if c.server.leaving.Load() {
			return p.Receipt{}, ErrLeaving
		}
	}
	from := engine.Client{Name: cmp.Or(params.Client, c.name), Op: params.Name, Brings: c.brings}
	return c.server.engine.Submit(engine.WithClient(ctx, from), params.ID, params.Op.Op)
}
