// Package nats keeps conversations in a stream of NATS JetStream, where programs on any machine can resume them.
package nats

import (
	"context"
	"sync"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/protocol"
)

// Options say which servers keep the conversations. URL must be set.
type Options struct {
	URL      string // of the servers, separated by commas, such as nats://127.0.0.1:4222
	Stream   string // the name of the stream; empty is "fermata"
	Replicas int    // on how many servers it is kept, when the stream is made; 0 is 1

	User, Password string // how to log in; empty if that is not needed
	Token          string // the same
	Creds          string // a file with credentials
	CA             string // a file with the certificates to trust
}

// New returns a store on NATS servers. It connects when it is first used. A process that cannot reach the servers for so
// long that another may take its conversations over stops their turns before that, as failed. Close ends the connection.
func New(ctx context.Context, o Options) engine.Store {
	s := &store{ctx: context.WithoutCancel(ctx)}
	s.journals = nats.New(ctx, nats.Options{
		URL: o.URL, Name: o.Stream, Replicas: o.Replicas,
		Auth: nats.Auth{User: o.User, Password: o.Password, Token: o.Token, Creds: o.Creds, CA: o.CA},
		Lost: func() {
			s.stop("the NATS servers did not answer for so long that another process may take this conversation over")
		},
		Full: func(err error) { s.stop(err.Error()) },
	})
	return s
}

type store struct {
	ctx      context.Context
	journals *nats.Store

	mu      sync.Mutex
	engines []*engine.Local // that use the store; guarded by mu
}

// Native returns what engines use.
func (s *store) Native() journal.Store { return s.journals }

// Attach is called by each engine that uses the store.
func (s *store) Attach(e *engine.Local) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engines = append(s.engines, e)
}

// stop ends all turns that write to the store.
func (s *store) stop(why string) {
	s.mu.Lock()
	engines := s.engines
	s.mu.Unlock()
	for _, e := range engines {
		e.StopAll(s.ctx, protocol.Error{Kind: protocol.ErrorJournal, Message: why, Hint: "what was recorded before is safe"})
	}
}

// Close implements engine.Store.
func (s *store) Close() error {
	s.journals.Close()
	return nil
}
