package web

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// Limits for connections. A connection is a stranger's until a request on it has a session.
const (
	maxStrangers   = 64
	maxConnections = 960 // of sessions
	maxPerSession  = 128
	maxReaders     = 448 // of sessions that can only read
)

// connections counts the connections of a listener. Strangers have few: when there is one too many, the oldest is closed, so
// that those who hold them cannot keep others out, who show within one request who they are.
type connections struct {
	net.Listener
	known slots

	mu        sync.Mutex
	strangers []*connection // the oldest first; guarded by mu
}

func limited(l net.Listener) *connections {
	return &connections{Listener: l, known: slots{most: maxConnections, perSession: maxPerSession, readers: maxReaders}}
}

// Accept returns the next connection.
func (l *connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, of: l}
	l.mu.Lock()
	l.strangers = append(l.strangers, c)
	var oldest *connection
	if len(l.strangers) > maxStrangers {
		oldest = l.strangers[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// leave takes a connection off the strangers, and reports whether it was one of them.
func (l *connections) leave(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.strangers, c)
	if i < 0 {
		return false
	}
	l.strangers = slices.Delete(l.strangers, i, i+1)
	return true
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
	c.of.leave(c)
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
	c.of.leave(c)
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
