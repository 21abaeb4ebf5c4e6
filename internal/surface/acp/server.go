// Package acp serves sessions to editors and other clients of the Agent Client Protocol, stable version 1: JSON-RPC in lines on stdio.
//
// It only translates. A session is a conversation of the engine, under the same id, and a prompt is a message that starts one of its turns; so
// the terminal UI, the page and other processes can join a session. Each session of a connection is followed from the journal at the client's
// own speed. What an event looks like to a client is package updates' business, the shapes are package wire's.
//
// What a client may rely on: a prompt is answered once, after everything that its turn shows; what session/load replays comes before its answer,
// and what happens next after it; a cancel that comes right after a prompt finds the turn of that prompt.
//
// Start with [Server.Serve]; the table of everything that is answered is in methods.go.
package acp

import (
	"context"
	"io"
	"log/slog"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options are what a server is made of.
type Options struct {
	Engine  engine.Engine
	Version string

	// Settings makes a client's request the settings of a new conversation; Change says what a request
	// changes about one that there is already. The remarks are for people: what of it has no effect.
	Settings func(app.SettingsRequest) (s p.Settings, remarks []string, err error)
	Change   func(now p.Settings, w app.SettingsRequest) (o p.Overrides, remarks []string, err error)

	// Allow remembers what may run unasked from now on. Clients are offered nothing of the kind if it is nil.
	Allow func(project.Permission) error

	// Elsewhere reports whether another process runs the turns of a conversation, which cannot use what a client brings to this one. May be nil.
	Elsewhere func(p.ConversationID) bool

	Detached bool // turns are run by another process, and do not end with the connection

	Local Local        // what can be asked about the machine
	Log   *slog.Logger // nil: nowhere

	Panicked panics.Log // keeps the traces of requests that panicked; may be nil
}

// A Local is what can be asked about the machine and the configuration.
type Local interface {
	Choices(ctx context.Context) ([]app.ModelChoice, error)
	ContextWindow(p.Settings) int64                  // tokens; 0 is unknown
	Cost(p.Settings, p.Usage) (usd float64, ok bool) // false if it is not known
	Allows(p.Settings) error                         // why settings are not allowed here; nil if they are
	Prompts(cwd string) []skills.Prompt              // prompt files that can be sent by their name
	OpenClientTools(cwd string, servers map[string]config.MCPServer, open openfile.Buffers) (*clienttools.Set, []config.Warning)
	Undo(ctx context.Context, id p.ConversationID, turn p.TurnID) (*app.Undo, error)
}

// A Server serves connections.
type Server struct{ o Options }

// New makes a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o}
}

// Serve answers one client until its stream or ctx ends, one message per line.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := s.newConn(ctx)
	defer c.end()
	context.AfterFunc(c.rpc.Ending(), func() { c.count(0) })
	defer c.letGo()
	return c.rpc.Serve(ctx, in, out)
}

// capabilities are what is offered.
func (s *Server) capabilities() wire.AgentCapabilities {
	offered := &wire.None{}
	return wire.AgentCapabilities{
		LoadSession: true,
		Prompt:      wire.PromptCapabilities{Image: true, EmbeddedContext: true},
		MCP:         wire.MCPCapabilities{HTTP: true},
		Session:     wire.SessionCapabilities{List: offered, Resume: offered, Close: offered, Delete: offered},
		Meta:        map[string]any{"fermata": map[string]any{"promptWhileRunning": "steer"}},
	}
}
