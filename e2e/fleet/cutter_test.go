package fleet

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// A cutter gives connections to a server that can be cut for good.
type cutter struct {
	s     *server.Server
	mu    sync.Mutex
	conns []net.Conn
	off   bool
}

// InProcessConn implements nats.InProcessConnProvider.
func (c *cutter) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return nil, errors.New("the cable is cut")
	}
	conn, err := c.s.InProcessConn()
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	for _, conn := range c.conns {
		conn.Close()
	}
}

// A blind connection does not see the lease of a node, as that of a server which is behind: what
// is read is another key.
type blind struct {
	s    *server.Server
	node string
}

// InProcessConn implements nats.InProcessConnProvider.
func (b *blind) InProcessConn() (net.Conn, error) {
	conn, err := b.s.InProcessConn()
	return &blindConn{conn, b}, err
}

type blindConn struct {
	net.Conn
	blind *blind
}

func (c *blindConn) Write(p []byte) (int, error) {
	const read = `"last_by_subj":"$KV.fermata-nodes.`
	other := strings.Repeat("z", len(c.blind.node))
	return c.Conn.Write(bytes.ReplaceAll(p, []byte(read+c.blind.node), []byte(read+other)))
}
