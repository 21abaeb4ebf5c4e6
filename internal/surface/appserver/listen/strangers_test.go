package listen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// counted counts the connections of a listener that are open.
type counted struct {
	net.Listener
	open, accepted atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.open.Add(1)
		l.accepted.Add(1)
		conn = &countedConn{Conn: conn, of: l}
	}
	return conn, err
}

type countedConn struct {
	net.Conn
	of   *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// Clients that have not shown a token have few connections and send little, and take none from those that have.
func TestStrangersCostLittle(t *testing.T) {
	const token = "correct horse battery"
	tcp, err := (Address{TCP: "127.0.0.1:0"}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &counted{Listener: tcp}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, Options{Token: &Token{sha256.Sum256([]byte(token))}, Serve: echo, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	address := l.Addr().String()
	header := http.Header{"Authorization": {"Bearer " + token}}
	first, _, err := websocket.Dial(t.Context(), "ws://"+address, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	defer first.CloseNow()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	const strangers = 300
	part := fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nX: %s", bytes.Repeat([]byte("x"), 60<<10))
	var conns []net.Conn
	for range strangers {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, part) // it may be closed
		conns = append(conns, conn)
	}
	second, _, err := websocket.Dial(t.Context(), "ws://"+address, &websocket.DialOptions{HTTPHeader: header}) // accepted after them
	if err != nil {
		t.Fatal(err)
	}
	defer second.CloseNow()
	runtime.ReadMemStats(&after)
	t.Logf("%d strangers: %d connections are open, %d goroutines, %d KiB were allocated", strangers, l.open.Load()-2, runtime.NumGoroutine()-goroutines, (after.TotalAlloc-before.TotalAlloc)>>10)
	if open := l.open.Load() - 2; open > maxStrangers {
		t.Errorf("%d strangers are connected", open)
	}
	for i, conn := range []*websocket.Conn{first, second} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("there?")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "there?" {
			t.Errorf("client %d: %q, %v", i, got, err)
		}
	}
	answer, _ := io.ReadAll(conns[strangers-1])
	if !strings.Contains(string(answer), "431") {
		t.Errorf("60 KiB of headers were answered with %.100q", answer)
	}
}

// Who has shown a token is refused when all connections are taken.
func TestOneClientTooMany(t *testing.T) {
	const token = "correct horse battery"
	h := &handler{o: Options{Token: &Token{sha256.Sum256([]byte(token))}}, ctx: t.Context(), slots: make(chan struct{})} // has room for none
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	for authorization, want := range map[string]int{"Bearer " + token: http.StatusServiceUnavailable, "Bearer x": http.StatusUnauthorized} {
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", authorization, w.Code, want)
		}
	}
}

// A request that is not completed is cut off.
func TestStrangersAreCutOff(t *testing.T) {
	const token = "correct horse battery"
	for name, request := range map[string]string{
		"half a header": "GET / HTTP/1.1\r\nHost: x\r\nX: ",
		"half a body":   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
			l.conns <- theirs
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- Serve(ctx, l, Options{Token: &Token{sha256.Sum256([]byte(token))}, Serve: echo, Log: slog.New(slog.DiscardHandler)})
			}()
			began := time.Now()
			if _, err := io.WriteString(ours, request); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(ours)
			if took := time.Since(began); took > 2*strangerTime {
				t.Errorf("%s: answered with %q, closed after %v", name, answer, took)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A pipeListener accepts pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }
