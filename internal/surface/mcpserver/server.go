// Package mcpserver lets programs use fermata over MCP, on one stream: the tools codex and
// codex-reply, the conversation tools, and the direct requests of Codex's clients, each with
// its own form of events and approvals over one follower.
//
// It only translates. What a message, a stop or an approval means is the engine's
// business; order, cancelling and the end of the stream are package jsonrpc's. No code here
// keeps a list of what is pending: a handler waits for the turn it is about, and its context is
// the client's interest in it.
//
// MCP's own methods are answered here too and not by the official SDK: framing, order, cancelling
// without an answer, our requests' ids and all notifications have to be ours, and what would be
// left to it are four small methods. Its client, and the TypeScript one, are the judges in the tests of
// cmd/fermata.
//
// Start with [Server.Serve]; the table of everything that is answered is in methods.go.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/panics"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options are what a server is made of.
type Options struct {
	Engine  engine.Engine
	Version string

	// Settings makes a client's request the settings of a new conversation, or says
	// what is wrong with it. The remarks are for people: what of it has no effect.
	Settings func(app.SettingsRequest) (s p.Settings, remarks []string, err error)

	// Change says what a request changes about a conversation that there is already.
	Change func(now p.Settings, w app.SettingsRequest) (o p.Overrides, remarks []string, err error)

	Local Local // what can be asked about the machine

	Log *slog.Logger // nil: nowhere

	Panicked panics.Log // keeps the traces of requests that panicked; may be nil
}

// A Server serves one client.
type Server struct {
	o     Options
	conn  *jsonrpc.Conn
	tools func() []tool // made once: their schemas take long to make

	initialized atomic.Bool
	elicits     atomic.Bool  // the client can be asked
	level       atomic.Int32 // the least that is logged to the client

	interrupts follow.Interrupts

	known     table[p.ConversationID, *conversation]
	listeners table[string, *listener] // by subscription
	named     table[string, struct{}]  // unknown members that the client was warned of
}

// cancelMethod cancels a request, in both directions.
const cancelMethod = "notifications/cancelled"

// New makes a server.
func New(ctx context.Context, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := newServer(o)
	s.level.Store(levelWarning)
	s.conn = jsonrpc.New(ctx, jsonrpc.Options{Methods: s.methods(), Cancel: cancelMethod, Log: o.Log, Panicked: o.Panicked})
	return s
}

func newServer(o Options) *Server {
	s := &Server{o: o}
	s.tools = sync.OnceValue(s.makeTools)
	return s
}

// Serve answers the client until the stream or ctx ends. Turns that calls wait for are
// stopped then, and the calls answered; the engine is the caller's to shut
// down.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.conn.Serve(ctx, in, out)
}

// Schema describes everything that is answered and sent, and the arguments of the tools,
// in JSON Schema.
func Schema() map[string]any {
	s := newServer(Options{})
	schema := jsonrpc.Schema(s.methods())
	tools := map[string]any{}
	for _, t := range s.tools() {
		tools[t.name] = t.schema
	}
	schema["tools"] = tools
	return schema
}

// A conversation is what the server remembers of one.
type conversation struct {
	id p.ConversationID

	// start is where the conversation stood when this client came to it: listeners
	// get everything after it.
	start p.Cursor
	mid   bool     // a turn was under way then
	over  p.TurnID // the last turn that was over then: no listener is sent its end

	created atomic.Pointer[json.RawMessage] // the request that began it, if that was a tool's

	group *follow.Group // everybody who follows it for this client
	desk  *desk         // what this client is asked

	mu        sync.Mutex
	streamed  p.Seq                  // the last event that a stream has sent: a call does not send it under its bare type again; guarded by mu
	reporters map[p.TurnID]*turnCall // the call that reports a turn: the first one; nil when its end was reported; guarded by mu
	streaming *stream                // guarded by mu

	used atomic.Pointer[chan struct{}] // closed when a client uses it next
}

func (s *Server) remember(id p.ConversationID) *conversation {
	c := &conversation{id: id, group: follow.New(s.o.Engine, id), desk: newDesk(s, id), reporters: map[p.TurnID]*turnCall{}}
	c.group.Panicked = s.o.Panicked
	c.use()
	return c
}

// use notifies those who follow that the conversation is used: if it was closed it is open again.
func (c *conversation) use() {
	next := make(chan struct{})
	if used := c.used.Swap(&next); used != nil {
		close(*used)
	}
}

// errUnknown says that there is no such conversation.
var errUnknown = errors.New("unknown conversation")

// find returns a conversation, of this process or an earlier one.
func (s *Server) find(ctx context.Context, name string) (*conversation, engine.Snapshot, error) {
	id, err := p.ParseConversationID(name)
	if err != nil {
		return nil, engine.Snapshot{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "%v", err)
	}
	snap, err := s.o.Engine.Resume(ctx, id)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, snap, &unknownError{id}
	}
	if err != nil {
		return nil, snap, err
	}
	if _, open := s.known.get(id); !open {
		for _, in := range snap.Returned {
			s.remark(ctx, []string{fmt.Sprintf("conversation %s: not delivered before, send it again if it is still wanted: %s", id, p.PlainText(in.Content))})
		}
	}
	c := s.remember(id)
	c.start, c.mid, c.over = snap.Last, snap.Active, snap.Turn
	if snap.Active {
		c.over--
	}
	c, open := s.known.add(id, c)
	if open {
		c.use()
	}
	return c, snap, nil
}

// An unknownError names a conversation that does not exist.
type unknownError struct{ id p.ConversationID }

func (e *unknownError) Error() string   { return fmt.Sprintf("%v: %s", errUnknown, e.id) }
func (e *unknownError) Unwrap() []error { return []error{errUnknown, requestError(e.Error())} }

func requestError(text string) error { return jsonrpc.Errorf(jsonrpc.CodeRequest, "%s", text) }

// The versions of MCP that are spoken, the latest first. Later ones have no requests from
// the server, which approvals need.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

type initializeParams struct {
	ProtocolVersion string `json:"protocolVersion"`
	Capabilities    struct {
		Elicitation json.RawMessage `json:"elicitation,omitempty"`
	} `json:"capabilities,omitzero"`
}

type initializeResult struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    map[string]any `json:"capabilities"`
	ServerInfo      serverInfo     `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

func (s *Server) initialize(_ context.Context, _ *jsonrpc.Request, in initializeParams) (initializeResult, error) {
	if s.initialized.Swap(true) {
		return initializeResult{}, requestError("already initialized")
	}
	s.elicits.Store(len(in.Capabilities.Elicitation) > 0 && string(in.Capabilities.Elicitation) != "null")
	version := in.ProtocolVersion
	if !slices.Contains(versions, version) {
		version = versions[0]
	}
	return initializeResult{
		ProtocolVersion: version,
		Capabilities:    map[string]any{"tools": map[string]any{"listChanged": true}, "logging": map[string]any{}},
		ServerInfo:      serverInfo{"fermata", "fermata", s.o.Version},
	}, nil
}
