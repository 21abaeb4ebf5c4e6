package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A conn is a connection.
type conn struct {
	s      *Server
	rpc    *jsonrpc.Conn
	life   context.Context // of what it does by itself
	end    context.CancelFunc
	client atomic.Pointer[wire.ClientCapabilities] // nil before initialize
	name   string                                  // the names of its messages begin with it

	mu       sync.Mutex
	sessions map[p.ConversationID]*session // that the client has opened; guarded by mu
	prompts  int                           // counts them; guarded by mu
	running  int                           // of them, those that are not answered; guarded by mu
}

// The bounds of a connection: bytes that wait for a client, requests that are under way, bytes of a message.
const (
	maxQueue = 1 << 20
	maxCalls = 256
	maxLine  = 64 << 20
)

func (s *Server) newConn(ctx context.Context) *conn {
	c := &conn{s: s, name: "acp-" + rand.Text()[:10] + "-", sessions: map[p.ConversationID]*session{}}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.rpc = jsonrpc.New(ctx, jsonrpc.Options{
		Methods: c.methods(), Cancel: "$/cancel_request", AnswerCancelled: true, NoBatches: true, Log: s.o.Log, Panicked: s.o.Panicked,
		MaxQueue: maxQueue, MaxCalls: maxCalls, MaxLine: maxLine,
	})
	return c
}

func (c *conn) initialize(_ context.Context, _ *jsonrpc.Request, in wire.Initialize) (wire.Initialized, error) {
	if !c.client.CompareAndSwap(nil, &in.Capabilities) {
		return wire.Initialized{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "already initialized")
	}
	return wire.Initialized{
		ProtocolVersion: wire.Version, Capabilities: c.s.capabilities(), AuthMethods: authMethods(in.Capabilities),
		Info: wire.Implementation{Name: "fermata", Title: "fermata", Version: c.s.o.Version},
	}, nil
}

// loginMethod is the id of the way to log in: fermata login, in a terminal.
const loginMethod = "login"

// authMethods are the ways to log in that a client can offer. Where it cannot run a terminal, it is told what to run.
func authMethods(client wire.ClientCapabilities) []wire.AuthMethod {
	m := wire.AuthMethod{ID: loginMethod, Name: "Log in", Description: "Run fermata login in a terminal, or set the variable of your provider's key"}
	if client.Auth.Terminal {
		m.Type, m.Args = "terminal", []string{"login"}
	} else if program, err := os.Executable(); client.Meta.TerminalAuth && err == nil {
		m.Meta = map[string]any{"terminal-auth": map[string]any{"label": "fermata login", "command": program, "args": []string{"login"}, "env": map[string]string{}}}
	}
	return []wire.AuthMethod{m}
}

// authenticate reports whether there is a key now.
func (c *conn) authenticate(_ context.Context, _ *jsonrpc.Request, in wire.Authenticate) (wire.None, error) {
	if in.MethodID != loginMethod {
		return wire.None{}, badParams("there is no way to log in called %q", in.MethodID)
	}
	_, _, err := c.s.o.Settings(settingsFor(""))
	return wire.None{}, refusal(err)
}

func badParams(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeParams, format, args...)
}

func notFound(id string) error {
	return jsonrpc.Errorf(wire.CodeNotFound, "there is no session %s here: load it first, or see session/list", id)
}

// refusal is an error of the configuration in the form that clients know: they offer a login if that is what is missing.
func refusal(err error) error {
	var key *config.MissingKeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &key), errors.Is(err, config.ErrNoProvider):
		return jsonrpc.Errorf(wire.CodeAuth, "%v", err)
	}
	return badParams("%v", err)
}

// failed is an error of the engine in the form that clients know.
func failed(err error, id p.ConversationID) error {
	var own *jsonrpc.Error
	var locked *engine.LockedError
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.Is(err, engine.ErrNotFound):
		return notFound(string(id))
	case errors.As(err, &locked):
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "session %s is open in another process that cannot be joined: %v", id, err)
	case errors.Is(err, engine.ErrEmpty):
		return badParams("prompt: it is empty")
	case errors.Is(err, engine.ErrBusy):
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "a turn is running: cancel it, or wait until it has ended")
	}
	return err
}

// absolute checks a path that a client names.
func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return badParams("cwd: %q is not an absolute path", path)
	}
	return nil
}

// directory checks the directory of a session.
func directory(path string) error {
	if err := absolute(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return badParams("cwd: %v", err)
	}
	if !info.IsDir() {
		return badParams("cwd: %s is not a directory", path)
	}
	return nil
}

// find returns a session that the client has opened.
func (c *conn) find(name string) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[p.ConversationID(strings.ToLower(name))]; s != nil {
		return s, nil
	}
	return nil, notFound(name)
}

// letGo ends what the client brought to its sessions.
func (c *conn) letGo() {
	c.mu.Lock()
	list := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range list {
		s.letGo()
	}
}

// update sends an update. It waits while too much waits for the client. If it fails the client has gone.
func (c *conn) update(ctx context.Context, id p.ConversationID, update any) {
	_ = c.rpc.Notify(ctx, "session/update", wire.Notification{SessionID: string(id), Update: update})
}
