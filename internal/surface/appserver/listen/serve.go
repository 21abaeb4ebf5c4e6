package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/fermata-agent/fermata/internal/strangers"
)

// Options are how clients are served.
type Options struct {
	Token *Token // nil: none is needed

	// Serve serves one client, one message per line, until its stream or ctx ends.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	Log *slog.Logger
}

// The bounds of a listener: connections at a time, and bytes of a message. A connection is a stranger's until it was upgraded, for which
// a token may be needed; then it is one of maxConnections.
const (
	maxConnections = 1000
	maxMessage     = 64 << 20
	maxStrangers   = 64
	maxHeader      = 16 << 10
	strangerTime   = 10 * time.Second // for a request and its answer
)

// Serve serves every client of a listener until ctx ends, and returns when all have been served.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	h := &handler{o: o, ctx: ctx, slots: make(chan struct{}, maxConnections)}
	server := &http.Server{
		Handler: h, ReadTimeout: strangerTime, WriteTimeout: strangerTime, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ConnContext: strangers.WithConn,
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(strangers.Limit(l, maxStrangers))
	h.serving.Wait() // server does not know of those that were upgraded
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

type handler struct {
	o       Options
	ctx     context.Context
	slots   chan struct{}  // one for each connection
	serving sync.WaitGroup // those that were upgraded
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.Header.Values("Origin")) > 0 {
		http.Error(w, "requests from web pages are refused", http.StatusForbidden)
		return
	}
	if r.URL.Path == "/readyz" || r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if h.o.Token != nil {
		if problem := h.o.Token.check(r); problem != "" {
			http.Error(w, problem, http.StatusUnauthorized)
			return
		}
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	h.serving.Add(1)
	defer h.serving.Done()
	if h.ctx.Err() != nil {
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true}) // origins are refused above
	if err != nil {
		return // it has answered
	}
	strangers.Known(r.Context())
	h.serve(conn)
}

// serve serves a client that was upgraded.
func (h *handler) serve(conn *websocket.Conn) {
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	life, end := context.WithCancel(context.WithoutCancel(h.ctx)) // the last answers are written when ctx has ended
	defer end()
	f := &frames{ctx: life, conn: conn}
	err := h.o.Serve(h.ctx, f, f)
	if err != nil && h.ctx.Err() == nil {
		h.o.Log.Debug("connection", "error", err)
	}
	leave(h.ctx, func() { _ = conn.Close(websocket.StatusNormalClosure, "") })
}

// leaveTime is how long a server that ends waits for a client's part of the close.
const leaveTime = 200 * time.Millisecond

// leave closes a connection, for which the client has to answer. Once ctx has ended
// it hardly waits for that: turns run until all clients have left.
func leave(ctx context.Context, hangUp func()) {
	done := make(chan struct{})
	go func() { // ends when the client answers, or gets too late
		defer close(done)
		hangUp()
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(leaveTime):
	}
}

// frames is a WebSocket as a stream of lines: each text frame is one.
type frames struct {
	ctx  context.Context
	conn *websocket.Conn
	in   []byte // read and not taken
	out  []byte // the beginning of a line
}

var errBinary = errors.New("a message is not text")

// Read gives the messages, each with a line feed behind it.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.in) == 0 {
		kind, data, err := f.conn.Read(f.ctx)
		switch {
		case websocket.CloseStatus(err) != -1, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return 0, io.EOF
		case err != nil:
			return 0, err
		case kind != websocket.MessageText:
			return 0, errBinary
		}
		f.in = append(bytes.ReplaceAll(data, []byte("\n"), []byte(" ")), '\n') // a line feed in JSON is only space
	}
	n := copy(p, f.in)
	f.in = f.in[n:]
	return n, nil
}

// Write sends each line as a message.
func (f *frames) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			f.out = append(f.out, p...)
			return n, nil
		}
		line := p[:i]
		if len(f.out) > 0 {
			line = append(f.out, line...)
		}
		if err := f.conn.Write(f.ctx, websocket.MessageText, line); err != nil {
			return 0, err
		}
		f.out, p = nil, p[i+1:]
	}
}
