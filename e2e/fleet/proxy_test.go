package fleet

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A proxy passes connections on to a server until it is told not to.
type proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	broken bool          // connections are refused
	mute   chan struct{} // closed while bytes pass; others wait
}

func newProxy(t testing.TB, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), conns: make(map[net.Conn]struct{}), mute: make(chan struct{})}
	close(p.mute)
	go p.accept() // ended below
	t.Cleanup(func() {
		l.Close()
		p.pass(true)
		p.cut()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(in) // ends with the connection
	}
}

func (p *proxy) serve(in net.Conn) {
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		in.Close()
		return
	}
	p.mu.Lock()
	if p.broken {
		p.mu.Unlock()
		in.Close()
		out.Close()
		return
	}
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(out, in) })
	both.Go(func() { p.copy(in, out) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, in)
	delete(p.conns, out)
	p.mu.Unlock()
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
		p.mu.Lock()
		mute := p.mute
		p.mu.Unlock()
		<-mute
		return to.Write(b)
	}), from)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// cut ends all connections, and refuses others until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = false
}

// pass says whether bytes pass. If not, they wait, as in a network that is out of order.
func (p *proxy) pass(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.mute:
		if !yes {
			p.mute = make(chan struct{})
		}
	default:
		if yes {
			close(p.mute)
		}
	}
}
