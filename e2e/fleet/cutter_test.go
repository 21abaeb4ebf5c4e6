package fleet

import (
	"errors"
	"net"
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
