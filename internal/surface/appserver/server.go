// Package appserver serves threads and turns to editors, phones and programs, in the form that the clients of Codex's
// app-server know: JSON messages in lines on stdio, or in the frames of a WebSocket.
//
// It only translates. A thread is a conversation of the engine and a turn one of its turns; each connection
// follows its threads from the journal by itself, at its own speed, so a slow one delays no other client and loses nothing. What
// an event looks like to a client is package items' business, the shapes are package wire's, sockets are package listen's.
//
// What a client may rely on: the answer to a request that starts a turn comes before anything of that turn; the end of a
// turn comes before any answer that reports it; an answer to thread/resume and what follows are the whole thread.
//
// Start with [Server.Serve]; the table of everything that is answered is in methods.go.
package appserver

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/surface/appserver/queue"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options are what a server is made of.
type Options struct {
	Engine  engine.Engine
	Version string
	Home    string // where conversations and the configuration are
	Cwd     string // where threads work that name no directory

	// Settings makes a client's request the settings of a new conversation; Change says what a request
	// changes about one that there is already. The remarks are for people: what of it has no effect.
	Settings func(app.SettingsRequest) (s p.Settings, remarks []string, err error)
	Change   func(now p.Settings, w app.SettingsRequest) (o p.Overrides, remarks []string, err error)

	// Allow remembers what may run unasked from now on. Clients are offered nothing of the kind if it is nil.
	Allow func(project.Permission) error

	Local Local        // what can be asked about the machine
	Log   *slog.Logger // nil: nowhere

	Panicked panics.Log // keeps the traces of requests that panicked; may be nil
}

// A Local is what can be asked about the machine and the configuration.
type Local interface {
	RunOnce(ctx context.Context, command oneoff.Command) (oneoff.Result, error)
	Choices(ctx context.Context) ([]app.ModelChoice, error)
	SkillList(cwd string) []app.Skill
	Key() (key string, ok bool)
	ViewConfig(cwd string) (app.ConfigView, error)
	SaveConfig(edits ...app.ConfigEdit) (file string, err error)
	Allowed() ([]p.SandboxMode, []p.ApprovalPolicy)
	MCPStatus() []app.MCPStatus
}

// A Server serves any number of connections.
type Server struct {
	o    Options
	life context.Context // of what it does by itself
	end  context.CancelFunc

	mu     sync.Mutex
	conns  map[*conn]bool                    // guarded by mu
	loaded map[p.ConversationID]*load        // threads that a client follows, or did lately; guarded by mu
	queues map[p.ConversationID]*queue.Queue // guarded by mu
}

// New makes a server. The caller calls Close.
func New(ctx context.Context, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, conns: map[*conn]bool{}, loaded: map[p.ConversationID]*load{}, queues: map[p.ConversationID]*queue.Queue{}}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// A Kind says what becomes of running turns when a connection ends.
type Kind int

// The kinds of connection.
const (
	Shared Kind = iota // they go on
	Only               // they are interrupted: no other client can follow them
)

// Serve answers one client until its stream or ctx ends, one message per line.
func (s *Server) Serve(ctx context.Context, kind Kind, in io.Reader, out io.Writer) error {
	c := s.newConn(ctx, kind)
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	defer s.forget(c)
	defer c.close()
	c.rpc.Go(c.sendLate)
	return c.rpc.Serve(ctx, in, out)
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// connected are the connections that there are now.
func (s *Server) connected() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// broadcast notifies every connection but one, which may be nil. It waits for none.
func (s *Server) broadcast(except *conn, method string, params any) {
	for _, c := range s.connected() {
		if c != except {
			c.later(method, params)
		}
	}
}

// A load is a thread that is loaded: clients want to know which are.
type load struct {
	followers int
	status    p.Seq       // the event that changed its status last, of those that were reported
	idle      *time.Timer // runs when no client follows
}

// unloadAfter is how long a thread counts as loaded when no client follows it any more.
const unloadAfter = time.Minute

// enter counts a follower of a thread.
func (s *Server) enter(id p.ConversationID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.loaded[id]
	if l == nil {
		l = &load{}
		s.loaded[id] = l
	}
	l.followers++
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
}

// exit counts it out. A thread without followers is unloaded after a while.
func (s *Server) exit(id p.ConversationID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.loaded[id]
	if l == nil {
		return
	}
	if l.followers--; l.followers == 0 {
		l.idle = time.AfterFunc(unloadAfter, func() { s.unload(id, l) })
	}
}

func (s *Server) unload(id p.ConversationID, l *load) {
	s.mu.Lock()
	gone := s.loaded[id] == l && l.followers == 0
	if gone {
		delete(s.loaded, id)
	}
	s.mu.Unlock()
	if !gone {
		return
	}
	for _, c := range s.connected() {
		c.closed(id)
	}
}

// statusChanged notifies those who do not follow a thread that its status has changed. Every follower reports that; the first one counts.
func (s *Server) statusChanged(id p.ConversationID, at p.Seq, status wire.StatusChanged) {
	s.mu.Lock()
	l := s.loaded[id]
	first := l != nil && at > l.status
	if first {
		l.status = at
	}
	s.mu.Unlock()
	if first {
		s.toOthers(id, "thread/status/changed", status)
	}
}

// toOthers notifies the connections that do not follow a thread.
func (s *Server) toOthers(id p.ConversationID, method string, params any) {
	for _, c := range s.connected() {
		if c.follows(id) == nil {
			c.later(method, params)
		}
	}
}

// closed notifies a client that a thread is no longer loaded.
func (c *conn) closed(id p.ConversationID) {
	c.later("thread/status/changed", wire.StatusChanged{ThreadID: string(id), Status: wire.NotLoaded})
	c.later("thread/closed", wire.ThreadRef{ThreadID: string(id)})
}

// isLoaded reports whether a client follows a thread, or did lately.
func (s *Server) isLoaded(id p.ConversationID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded[id] != nil
}

// Close ends what the server does by itself.
func (s *Server) Close() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.loaded {
		if l.idle != nil {
			l.idle.Stop()
		}
	}
	clear(s.loaded)
}
