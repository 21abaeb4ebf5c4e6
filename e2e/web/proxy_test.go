package web

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A proxy stands between the browser and the server, and can be cut.
type proxy struct {
	t    *testing.T
	to   string
	l    net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
	off  bool
}

// newProxy listens at 127.0.0.1 with the port that the server has at 127.0.0.2: pages cannot tell them apart.
func newProxy(t *testing.T, s *server) *proxy {
	t.Helper()
	p := &proxy{t: t, open: map[net.Conn]bool{}}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.origin(), "http://"))
	p.to = net.JoinHostPort("127.0.0.2", port)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	p.l = l
	go p.accept() // ends with the listener
	t.Cleanup(func() { l.Close(); p.cut() })
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		go p.serve(c) // ends with the connection
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	off := p.off
	p.open[c] = true
	p.mu.Unlock()
	defer func() { p.mu.Lock(); delete(p.open, c); p.mu.Unlock() }()
	if off {
		return
	}
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	go func() { _, _ = io.Copy(s, c); s.Close() }() // ends with the connection
	_, _ = io.Copy(c, s)
}

// cut ends all connections and lets none through.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	for c := range p.open {
		c.Close()
	}
}

// mend lets connections through again.
func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = false
}
