package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// A Member is how a process takes part in the work of all that use the stream. The zero value is one
// that does not.
type Member struct {
	Name    string   `json:"name,omitempty"` // for people
	Labels  []string `json:"labels,omitempty"`
	Turns   int      `json:"turns,omitempty"`   // how many it runs at once for others
	Version string   `json:"version,omitempty"` // of its program

	Now func() Activity `json:"-"` // what it does at the moment; nil if it does nothing for others
}

// An Activity is what a node does, as of its latest sign of life.
type Activity struct {
	Draining bool   `json:"draining,omitempty"` // it takes nothing any more, and ends when its turns have ended
	Work     []Turn `json:"work,omitempty"`     // the turns that it runs for others, and those that wait for a user or a limit
}

// A Turn is one that a node runs for others.
type Turn struct {
	Conversation string `json:"conversation"`
	Client       string `json:"client,omitempty"`  // that submitted it
	Seconds      int64  `json:"seconds"`           // since it was taken
	Waiting      bool   `json:"waiting,omitempty"` // it waits, and does not count
}

// A Node is a process that counts as alive.
type Node struct {
	journal.Owner
	Member
	Activity

	ID   string    `json:"-"` // which no other process has
	Seen time.Time `json:"-"` // its latest sign of life, by the clock of the servers
}

// Running is how many turns it runs for others.
func (n Node) Running() (running int) {
	for _, t := range n.Work {
		if !t.Waiting {
			running++
		}
	}
	return running
}

// ControlSubject is where a node that takes part in a fleet is asked for something.
func ControlSubject(stream, node string) string { return stream + ".control." + node }

// A Link is what others may use of a store's connection, which stays the store's.
type Link struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	Name      string        // of the stream, and the first word of all subjects
	Lease     time.Duration // how long leases last
	Replicas  int           // of the stream
	Storage   jetstream.StorageType
}

// Link returns the connection to the servers.
func (s *Store) Link(ctx context.Context) (Link, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return Link{}, s.explain(err)
	}
	return Link{Conn: l.nc, JetStream: l.js, Name: s.o.Name, Lease: l.ttl, Replicas: l.replicas, Storage: s.layout().Storage()}, nil
}

func (s *Store) nodeSubject() string { return s.o.Name + ".node." + s.node }

// TakePart makes this process count as alive, also if it has no conversation open.
func (s *Store) TakePart(ctx context.Context) error {
	if _, err := s.owner(ctx); err != nil {
		return s.explain(err)
	}
	return nil
}

// Nodes returns the processes that count as alive, this one included if it does.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	nodes, err := s.listNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", s.explain(err))
	}
	return nodes, nil
}

func (s *Store) listNodes(ctx context.Context) ([]Node, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, refusal.ErrNoAnswer)
	defer cancel()
	w, err := l.nodes.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var all []Node
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, refusal.ErrNoAnswer
			}
			if e == nil { // that is all
				slices.SortFunc(all, func(a, b Node) int {
					return slices.Compare([]string{a.Name, a.Host, a.Node}, []string{b.Name, b.Host, b.Node})
				})
				return all, nil
			}
			var n Node
			if !isEnded(e.Value()) && json.Unmarshal(e.Value(), &n) == nil { // else it is of a version that we do not know
				n.ID, n.Seen = e.Key(), e.Created()
				all = append(all, n)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
