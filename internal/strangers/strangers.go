// Package strangers bounds how many connections of clients that are not known yet a server has: when there is one too many, the
// oldest is closed, so that those who hold them cannot keep others out, who show with their first request who they are. Start reading
// at [Limit].
package strangers

import (
	"context"
	"net"
	"slices"
	"sync"
)

// A Listener accepts connections, each of which is a stranger's until [Conn.Known] is called.
type Listener struct {
	net.Listener
	most int

	mu        sync.Mutex
	strangers []*Conn // the oldest first; guarded by mu
}

// Limit makes a listener with so many strangers at a time.
func Limit(l net.Listener, most int) *Listener { return &Listener{Listener: l, most: most} }

// Accept returns the next connection, a [*Conn].
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: conn, of: l}
	l.mu.Lock()
	l.strangers = append(l.strangers, c)
	var oldest *Conn
	if len(l.strangers) > l.most {
		oldest = l.strangers[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// Count is how many strangers are connected.
func (l *Listener) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.strangers)
}

// A Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	of *Listener
}

// Known says that the client is no stranger any more.
func (c *Conn) Known() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if i := slices.Index(c.of.strangers, c); i >= 0 {
		c.of.strangers = slices.Delete(c.of.strangers, i, i+1)
	}
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.Known()
	return c.Conn.Close()
}

type connKey struct{}

// WithConn lets requests find their connection, as ConnContext of an http.Server.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// Known says that the client that sent a request is no stranger any more.
func Known(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		c.Known()
	}
}
