package web

import (
	"context"
	"net"
	"sync"

	"github.com/fermata-agent/fermata/internal/strangers"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// Limits for connections. A connection is a stranger's until a request on it has a session.
const (
	maxStrangers   = 64
	maxConnections = 960 // of sessions
	maxPerSession  = 128
	maxReaders     = 448 // of sessions that can only read
)

// connections counts the connections of a listener. Strangers have few, and take none of those of sessions.
type connections struct {
	*strangers.Listener
	known slots
}

func limited(l net.Listener) *connections {
	return &connections{strangers.Limit(l, maxStrangers), slots{most: maxConnections, perSession: maxPerSession, readers: maxReaders}}
}

// Accept returns the next connection.
func (l *connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, of: l}, nil
}

// A connection is a stranger's, or that of the session which was the first to use it.
type connection struct {
	net.Conn
	of *connections

	mu      sync.Mutex
	session *access.Session // nil of a stranger; guarded by mu
	closed  bool            // guarded by mu
}

// belongs makes it the connection of a session, unless that has too many or it has one already.
func (c *connection) belongs(x access.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil || c.closed {
		return true
	}
	if !c.of.known.take(x) {
		return false
	}
	c.session = &x
	if conn, ok := c.Conn.(*strangers.Conn); ok {
		conn.Known()
	}
	return true
}

// Close closes it.
func (c *connection) Close() error {
	c.mu.Lock()
	if !c.closed && c.session != nil {
		c.of.known.release(*c.session)
	}
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection has requests know their connection.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if c, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// known makes the connection of a request one of its session, and reports whether there is room for that.
func (s *Server) known(r *request) bool {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	return !ok || c.belongs(r.session)
}
