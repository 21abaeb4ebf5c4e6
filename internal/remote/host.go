package remote

import (
	"context"
	"io"
	"sync"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/panics"
)

// A Host lets other processes join the conversations of this one. It listens from the
// time at which the first conversation is opened.
type Host struct {
	ctx     context.Context
	dir     string
	program string
	failed  func(error)

	// Changed is called when clients come and go. It must not block, and is set before anything
	// is opened. May be nil.
	Changed func()

	Panicked panics.Log // keeps the traces of requests that panicked; set likewise; may be nil

	mu       sync.Mutex
	server   *Server        // guarded by mu
	listener *Listener      // nil while nothing is open; guarded by mu
	others   []Acceptor     // guarded by mu
	left     bool           // it listens no more; guarded by mu
	serving  sync.WaitGroup // of listener and others
}

// An Acceptor gives connections of clients that do not come by the socket.
type Acceptor interface {
	Accept() (io.ReadWriteCloser, error) // an error is the end
	Close() error
}

// NewHost makes a host that listens in dir. program is the version of this program.
// failed is called if it cannot listen; then no process can join, and all else works.
func NewHost(ctx context.Context, dir, program string, failed func(error)) *Host {
	return &Host{ctx: context.WithoutCancel(ctx), dir: dir, program: program, failed: failed}
}

// serve says whose conversations others join. It is called before anything is opened.
func (h *Host) serve(e engine.Engine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server = NewServer(e, h.program)
	h.server.changed, h.server.Panicked = h.Changed, h.Panicked
}

// Address listens, and returns where; empty if that fails.
func (h *Host) Address() string {
	address, err := h.Listen()
	if err != nil {
		h.failed(err)
	}
	return address
}

// Listen listens, unless it does already, and returns where.
func (h *Host) Listen() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == nil || h.left { // no client would be served
		return "", nil
	}
	if h.listener != nil {
		return h.listener.Address(), nil
	}
	l, err := Listen(h.dir)
	if err != nil {
		return "", err
	}
	h.listener = l
	server := h.server
	h.serving.Go(func() { l.Serve(h.ctx, server) }) // ends with leave
	return l.Address(), nil
}

// Accept serves the clients that an acceptor gives, too. It closes the acceptor.
func (h *Host) Accept(a Acceptor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server == nil || h.left {
		go a.Close() // at once
		return
	}
	h.others = append(h.others, a)
	server := h.server
	h.serving.Go(func() { // ends with leave
		for {
			conn, err := a.Accept()
			if err != nil {
				return
			}
			h.serving.Go(func() { _ = server.ServeConn(h.ctx, conn) }) // ends with close; how is its client's affair
		}
	})
}

// leave accepts no more clients. It is called before the engine is shut down.
func (h *Host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left {
		return
	}
	h.left = true
	h.server.Leave()
	if h.listener != nil {
		h.listener.Close()
	}
	for _, a := range h.others {
		a.Close()
	}
}

// close ends all connections, after leave.
func (h *Host) close() {
	h.mu.Lock()
	server := h.server
	h.mu.Unlock()
	if server != nil {
		server.Close()
		h.serving.Wait()
	}
}

// Clients is how many processes have joined this one.
func (h *Host) Clients() int {
	h.mu.Lock()
	server := h.server
	h.mu.Unlock()
	if server == nil {
		return 0
	}
	return server.Clients()
}
