package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/internal/tool/mcp/message"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session is a connection to a started server.
type session struct {
	server  *server
	sdk     *sdk.ClientSession
	offer   offer
	began   time.Time
	took    time.Duration // until it had listed its tools
	changed chan struct{} // what it lists changed; holds one
	ended   chan struct{} // closed when the connection is over
	cancel  context.CancelCauseFunc
	process *process // nil over HTTP

	tooLong    atomic.Bool // a message did not end
	authorizer *authorizer // nil if the service learns by other means who calls

	mu       sync.Mutex
	calls    map[string]*running // by token; guarded by mu
	lastCall int64               // guarded by mu
}

// protocolVersion is the latest one in which a server may ask its client something.
const protocolVersion = "2025-11-25"

// connect starts the server and lists its tools, within its time limit. The
// connection ends with ctx, or with close.
func (s *server) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(s.def.StartupTimeout, func() {
		cancel(fmt.Errorf("it did not start within %v", s.def.StartupTimeout))
	})
	defer limit.Stop()
	ss := &session{server: s, began: time.Now(), changed: make(chan struct{}, 1), ended: make(chan struct{}), cancel: cancel, calls: map[string]*running{}}
	transport, err := ss.open(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // whatever it was at
	}
	if err != nil {
		cancel(err)
		return nil, err
	}
	ss.sdk, err = ss.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err == nil {
		ss.offer, err = s.list(ctx, ss.sdk)
	}
	if err == nil && limit.Stop() {
		ss.took = time.Since(ss.began)
		go ss.follow() // ended by the end of the connection
		return ss, nil
	}
	err = ss.startError(ctx, err)
	cancel(err)
	if ss.sdk != nil {
		_ = ss.sdk.Close()
	}
	return nil, err
}

// follow closes ended when the connection is over. A server that is still there then
// is of no use.
func (ss *session) follow() {
	_ = ss.sdk.Wait()
	if ss.process != nil {
		ss.process.command.Stop(errClosed)
	}
	close(ss.ended)
}

// over reports whether the session is of no use any more. The end of the process is
// known before that of the connection.
func (ss *session) over() bool {
	var exited <-chan struct{}
	if p := ss.process; p != nil {
		if p.givenUp.Load() {
			return true
		}
		exited = p.exited
	}
	select {
	case <-ss.ended:
		return true
	case <-exited:
		return true
	default:
		return false
	}
}

func (ss *session) client() *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: ss.server.opt.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		ElicitationHandler:          ss.elicit,
		ProgressNotificationHandler: ss.progress,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { ss.listChanged() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { ss.listChanged() },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { ss.listChanged() },
	})
	c.AddReceivingMiddleware(refuseSampling)
	return c
}

func (ss *session) listChanged() {
	select {
	case ss.changed <- struct{}{}:
	default: // it is known
	}
}

// open returns what the protocol is spoken over.
func (ss *session) open(ctx context.Context) (sdk.Transport, error) {
	if ss.server.def.Command != "" {
		return ss.startProcess(ctx)
	}
	s := ss.server
	transport, err := s.httpTransport(ss.endTooLong)
	if err == nil && s.opt.Logins != nil && !hasToken(s.def) {
		ss.authorizer = &authorizer{name: s.name, url: s.def.URL, logins: s.opt.Logins, client: &http.Client{Timeout: loginRequests}}
		transport.OAuthHandler = ss.authorizer
	}
	return transport, err
}

// httpTransport is a connection to a service. A token that is missing is an error: what
// the service says without one would mislead.
func (s *server) httpTransport(tooLong func()) (*sdk.StreamableClientTransport, error) {
	header := http.Header{}
	for name, value := range s.def.HTTPHeaders {
		header.Set(name, value.Reveal())
	}
	for name, variable := range s.def.EnvHTTPHeaders {
		if value := s.getenv(variable); value != "" {
			header.Set(name, value)
		}
	}
	if name := s.def.BearerTokenEnvVar; name != "" {
		token := s.getenv(name)
		if token == "" {
			return nil, fmt.Errorf("the environment variable %s, which has its token, is not set", name)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return &sdk.StreamableClientTransport{
		Endpoint:   s.def.URL,
		HTTPClient: &http.Client{Transport: headers{header, origin(s.def.URL), s.bounds, tooLong}}, MaxEventSize: 3 * message.KeptBytes, // more than is left of one
	}, nil
}

// headers adds headers to the requests to a service, and shortens its answers. If it sends us elsewhere, the headers stay away:
// they may be secrets.
type headers struct {
	add     http.Header
	to      string // the origin of the service
	bounds  message.Bounds
	tooLong func() // called for an answer that does not end
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(h.with(r))
	if err == nil {
		message.Shorten(answer, h.bounds, h.tooLong)
	}
	return answer, err
}

func (h headers) with(r *http.Request) *http.Request {
	if r.URL.Scheme+"://"+r.URL.Host != h.to {
		return r
	}
	r = r.Clone(r.Context())
	for name, values := range h.add {
		r.Header[name] = values
	}
	return r
}

func (s *server) getenv(name string) string {
	if s.opt.Getenv == nil {
		return ""
	}
	return s.opt.Getenv(name)
}

// A process is a server that was started.
type process struct {
	command *proc.Command
	out     *io.PipeReader
	stderr  capture.Capture // read only after exited
	result  proc.Result     // read only after exited
	exited  chan struct{}   // closed when nothing of it runs
	givenUp atomic.Bool     // it is being ended, since it does not react
}

// inherited are the variables that a server gets from our environment, besides those
// that its definition names.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"}

func (s *server) environ() []string {
	env := []string{}
	for _, name := range slices.Concat(inherited, s.def.EnvVars) {
		if v := s.getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range s.def.Env {
		env = append(env, name+"="+v.Reveal())
	}
	return env
}

// stopBound is how long the end of a server may take in all, stopGrace how much of it a
// server has between SIGTERM and SIGKILL: one that is an agent itself has to stop its turns.
const (
	stopBound = time.Second
	stopGrace = 500 * time.Millisecond
)

// startProcess starts the program of the server. It ends with ctx.
func (ss *session) startProcess(ctx context.Context) (sdk.Transport, error) {
	s := ss.server
	spec := proc.Spec{
		Argv: append([]string{s.def.Command}, s.def.Args...), Dir: s.dir(), Env: s.environ(),
		Input: true, Bound: stopBound, Grace: stopGrace,
	}
	r, w := io.Pipe()
	p := &process{out: r, exited: make(chan struct{}), stderr: capture.Capture{Head: 0, Tail: 2 << 10}}
	lines := message.NewLineFilter(w, func(b []byte) { p.stderr.Write(proc.Stderr, b) }, s.bounds, ss.endTooLong)
	command, err := s.opt.Spawner.Start(ctx, spec, func(stream proc.Stream, b []byte) {
		if stream == proc.Stdout {
			lines.Take(b)
		} else {
			p.stderr.Write(proc.Stderr, b)
		}
	})
	if err != nil {
		return nil, err
	}
	p.command, ss.process = command, p
	command.Release()
	go func() { // ended by the end of the process
		p.result = command.Wait()
		close(p.exited)
		_ = w.CloseWithError(io.EOF)
	}()
	context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Cause(ctx)) }) // the reader has left
	return &sdk.IOTransport{Reader: r, Writer: &limited{command.Input(), s.writeLimit, p.giveUp}, MaxLineLength: -1}, nil
}

// defaultWriteLimit is how long a server may not read what it is sent before it is given up.
const defaultWriteLimit = 10 * time.Second

// limited is the input of a server. A server that does not read would hold up all calls:
// a write that takes too long ends it.
type limited struct {
	io.WriteCloser
	limit time.Duration
	stop  func(cause error)
}

func (l *limited) Write(b []byte) (int, error) {
	if d, ok := l.WriteCloser.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(l.limit)) // fails when it is closed, which Write says
	}
	n, err := l.WriteCloser.Write(b)
	if err != nil {
		l.stop(fmt.Errorf("it does not read what it is sent: %w", err))
	}
	return n, err
}

// giveUp ends a server that does not react. It does not wait.
func (p *process) giveUp(cause error) {
	p.givenUp.Store(true)
	p.command.Stop(cause)
}

// endTooLong ends a session whose server sends a message without an end.
func (ss *session) endTooLong() {
	ss.tooLong.Store(true)
	ss.stop(message.ErrTooLong)
}

// closeWait is how long a server may take to end by itself when its input ends.
const closeWait = 300 * time.Millisecond

// close ends the connection, and the server, and waits until nothing of it runs.
func (ss *session) close() {
	if p := ss.process; p != nil {
		_ = p.command.Input().Close()
		timer := time.NewTimer(closeWait)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
		}
		p.command.Stop(errClosed)
		<-p.exited
		ss.cancel(errClosed)
		<-ss.ended
		return
	}
	ss.closeHTTP()
	ss.cancel(errClosed)
}

// closeHTTP ends a session with a service, which may not answer.
func (ss *session) closeHTTP() {
	closed := make(chan struct{})
	go func() { // ended by cancel, if not before
		_ = ss.sdk.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		ss.cancel(errClosed)
	}
}

// startError says why the server could not be started.
func (ss *session) startError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if ss.process == nil {
		return plain(err)
	}
	ss.process.command.Stop(err)
	<-ss.process.exited
	if ss.process.result.Stopped { // it did not end by itself
		return ss.process.describe(err)
	}
	return ss.why()
}

// plain leaves out of an error how the SDK came to it.
func plain(err error) error {
	var login *LoginError
	if errors.As(err, &login) {
		return login
	}
	var request *url.Error
	if errors.As(err, &request) {
		return fmt.Errorf("cannot connect: %w", request.Err)
	}
	text := err.Error()
	for _, prefix := range []string{`calling "initialize": `, `sending "initialize": `, `calling "resources/read": `, `calling "prompts/get": `, "rejected by transport: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// why says why the connection is over.
func (ss *session) why() error {
	if ss.tooLong.Load() {
		return message.ErrTooLong
	}
	if ss.process == nil {
		return errors.New("the connection was lost")
	}
	<-ss.process.exited
	r := ss.process.result
	switch {
	case r.Err != nil:
		return ss.process.describe(r.Err)
	case r.Signal != "":
		return ss.process.describe(fmt.Errorf("it was killed by %s", r.Signal))
	}
	return ss.process.describe(fmt.Errorf("it ended with exit code %d", r.ExitCode))
}

// describe adds what the server printed at last.
func (p *process) describe(err error) error {
	if text := p.log(); text != "" {
		return fmt.Errorf("%w; it printed: %s", err, text)
	}
	return err
}

// log is what the server printed last, besides messages.
func (p *process) log() string {
	return strings.TrimSpace(strings.ToValidUTF8(p.stderr.Text(), "\uFFFD"))
}
