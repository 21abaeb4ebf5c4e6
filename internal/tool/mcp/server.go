package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool/mcp/message"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is one MCP server. Its goroutine, run, starts it when a session is asked
// for and there is none.
type server struct {
	name string
	def  config.MCPServer
	opt  Options

	writeLimit time.Duration
	bounds     message.Bounds

	asks  chan chan<- answer // many senders; received only by run
	done  chan struct{}      // closed when run has ended
	state atomic.Pointer[state]
}

// A state is what is known of a server. It is replaced, never changed.
type state struct {
	offer
	old     bool  // the tools are those of some time ago
	started bool  // the server has been started
	err     error // why it could not be started, or has ended; nil once it is started

	starting bool
	live     *session // the latest
}

// An offer is what a server has, as far as its definition lets it through.
type offer struct {
	tools     []*Tool // nil: not known
	prompts   []Prompt
	resources []Resource
}

type answer struct {
	session *session
	err     error
}

func newServer(name string, def config.MCPServer, opt Options) *server {
	s := &server{name: name, def: def, opt: opt, writeLimit: defaultWriteLimit, bounds: message.DefaultBounds, asks: make(chan chan<- answer), done: make(chan struct{})}
	o, old := s.loadList()
	s.state.Store(&state{offer: o, old: old})
	return s
}

func (s *server) tools() []*Tool { return s.state.Load().tools }

var errClosed = errors.New("the program ends")

// session returns the session with the server, starting it if need be.
func (s *server) session(ctx context.Context) (*session, error) {
	to := make(chan answer, 1) // room for the answer: run never waits
	select {
	case s.asks <- to:
	case <-s.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-to:
		return a.session, a.err
	case <-s.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// nudge asks for a start and does not wait for it.
func (s *server) nudge() {
	select {
	case s.asks <- make(chan answer, 1):
	default: // it is busy with one, or it ends
	}
}

// An owner is what run knows of its server. Only run touches it.
type owner struct {
	*server
	live     *session
	starting chan answer // delivers one; nil if it is not being started
	listing  chan offer
	waiting  []chan<- answer
	failures int       // starts that failed and sessions that ended, in a row
	retryAt  time.Time // before it there is no new start
}

// run owns the server until ctx ends.
func (s *server) run(ctx context.Context) {
	defer close(s.done)
	o := &owner{server: s}
	defer o.finish()
	for {
		var ended, changed <-chan struct{}
		if o.live != nil {
			ended = o.live.ended
			changed = o.live.changed
		}
		select {
		case to := <-s.asks:
			o.ask(ctx, to)
		case a := <-o.starting:
			o.started(a)
		case <-ended:
			o.lost()
		case <-changed:
			o.relist(ctx)
		case has := <-o.listing:
			o.listing = nil
			if has.tools != nil {
				o.change(func(st *state) { st.offer, st.old = has, false })
			}
		case <-ctx.Done():
			return
		}
	}
}

// patience is how long a call waits for a start that has to wait itself, since the
// server failed several times.
const patience = 2 * time.Second

func (o *owner) ask(ctx context.Context, to chan<- answer) {
	if o.live != nil && !o.live.over() {
		to <- answer{session: o.live}
		return
	}
	if o.live != nil {
		o.lost()
	}
	left := time.Until(o.retryAt)
	if o.starting == nil && left > patience {
		to <- answer{err: fmt.Errorf("%w; it is started again in %v", o.state.Load().err, left.Round(time.Second))}
		return
	}
	o.waiting = append(o.waiting, to)
	if o.starting == nil {
		o.start(ctx, left)
	}
}

// start starts the server, after a time.
func (o *owner) start(ctx context.Context, after time.Duration) {
	result := make(chan answer, 1) // so that the starter never waits
	o.starting = result
	o.change(func(st *state) { st.starting = true })
	s := o.server
	go func() { // ended by ctx and by the time limit, waited for by finish
		timer := time.NewTimer(max(0, after))
		defer timer.Stop()
		select {
		case <-timer.C:
			ss, err := s.connect(ctx)
			result <- answer{ss, err}
		case <-ctx.Done():
			result <- answer{err: errClosed}
		}
	}()
}

func (o *owner) started(a answer) {
	o.starting = nil
	if a.err != nil {
		o.failed(a.err)
	} else {
		o.live = a.session
		o.state.Store(&state{offer: a.session.offer, started: true, live: a.session})
	}
	for _, to := range o.waiting {
		to <- a
	}
	o.waiting = nil
}

// stable is how long a server must have run for its end to be no failure to start.
const stable = time.Minute

// lost notes that the server has ended by itself.
func (o *owner) lost() {
	if time.Since(o.live.began) > stable {
		o.failures = 0
	}
	ss := o.live
	o.live = nil
	ss.close()
	o.failed(ss.why())
}

// failed notes why there is no session. The tools stay known: a call starts the
// server again.
func (o *owner) failed(err error) {
	o.failures++
	o.retryAt = time.Now().Add(backoff(o.failures))
	o.change(func(st *state) { st.err, st.starting = err, false })
}

// change replaces the state by one that differs in something.
func (o *owner) change(f func(*state)) {
	st := *o.state.Load()
	f(&st)
	o.state.Store(&st)
}

// backoff is how long a start has to wait after some failures. The first end of a
// server is taken for an accident.
func backoff(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(500*time.Millisecond<<min(failures-2, 10), 30*time.Second)
}

// relist asks for the tools again, since they changed.
func (o *owner) relist(ctx context.Context) {
	if o.listing != nil {
		return // it is asked again when the server says so again
	}
	ss, s := o.live, o.server
	result := make(chan offer, 1)
	o.listing = result
	go func() { // ended by its time limit and by the end of the session
		ctx, cancel := context.WithTimeout(ctx, s.def.StartupTimeout)
		defer cancel()
		has, err := s.list(ctx, ss.sdk)
		if err != nil {
			has = offer{}
		}
		result <- has
	}()
}

// finish ends what runs.
func (o *owner) finish() {
	if o.starting != nil {
		if a := <-o.starting; a.session != nil {
			a.session.close()
		}
	}
	if o.live != nil {
		o.live.close()
	}
	if o.listing != nil {
		<-o.listing
	}
	for _, to := range o.waiting {
		to <- answer{err: errClosed}
	}
}

// list asks the server for what it has, keeps the list, and returns what the definition lets through.
func (s *server) list(ctx context.Context, from *sdk.ClientSession) (offer, error) {
	list := listing{Tools: []listed{}}
	has := from.InitializeResult().Capabilities
	if has == nil || has.Tools != nil {
		for t, err := range from.Tools(ctx, nil) {
			if err != nil {
				return offer{}, fmt.Errorf("list its tools: %w", err)
			}
			list.Tools = append(list.Tools, describe(t))
		}
	}
	if has != nil && has.Prompts != nil {
		list.Prompts = s.listPrompts(ctx, from)
	}
	if has != nil && has.Resources != nil {
		list.Resources = s.listResources(ctx, from)
	}
	s.saveList(list)
	return s.offered(list), nil
}

// describe takes what is used of the description of a tool.
func describe(t *sdk.Tool) listed {
	l := listed{Name: t.Name, Description: t.Description, Parameters: parameters(t.InputSchema)}
	if a := t.Annotations; a != nil {
		l.ReadOnly = a.ReadOnlyHint
		l.Destructive = a.DestructiveHint != nil && *a.DestructiveHint
	}
	return l
}

// offered is what the definition lets through.
func (s *server) offered(list listing) offer {
	o := offer{tools: []*Tool{}, prompts: slices.Clone(list.Prompts), resources: slices.Clone(list.Resources)}
	for i := range o.prompts {
		o.prompts[i].Server = s.name
	}
	for i := range o.resources {
		o.resources[i].Server = s.name
	}
	for _, t := range list.Tools {
		if s.offers(t.Name) {
			o.tools = append(o.tools, newTool(s, t))
		}
	}
	return o
}

func (s *server) offers(name string) bool {
	if s.def.EnabledTools != nil && !slices.Contains(s.def.EnabledTools, name) {
		return false
	}
	return !slices.Contains(s.def.DisabledTools, name)
}
