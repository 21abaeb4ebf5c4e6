// Package nats keeps conversations in a stream of NATS JetStream, so that any
// machine can read them and any can take them over.
//
// A conversation is the messages of one subject, in two kinds: records, and the text of open items. What makes it safe:
//   - A message of records is accepted only behind the last one that its writer knew
//     (expected last sequence of the subject). Opening begins with such a message, which
//     carries the next epoch: from then on every earlier writer is refused, whatever
//     it believes. That is the fence. Leases only decide who tries.
//   - A batch of records is one message, or pieces of which the last one makes
//     it valid: it is there whole or not at all.
//   - Text of open items needs no fence: a reader sees it in the order of the stream, and
//     ignores text of an epoch that another has followed.
//   - A message whose acknowledgement was lost is looked for before it is sent
//     again, and could not be stored twice.
//
// Start reading at [Store]; package wire is the form of messages, conn.go what is asked of
// the server, journal.go the writer, view.go reading, lease.go who is alive.
package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// Options say where conversations are kept, and by whom.
type Options struct {
	URL      string // of the servers, separated by commas
	Name     string // of the stream, and the first word of all subjects; "fermata" if empty
	Auth     Auth
	Domain   string // of JetStream; empty is that of the account
	Replicas int    // of each message, when the stream is made; 1 if 0
	Memory   bool   // keep everything in the servers' memory, when the stream is made
	MaxBytes int64  // that the stream may have, when it is made; 0 is no limit
	Lease    time.Duration

	// Address returns where this process accepts clients, as in file.Options.
	Address func() string
	// Member is how this process takes part in the work of all.
	Member Member
	// Join says that Open does not wait for owners that accept clients.
	Join bool
	// Accept begins to accept clients from any machine at a subject. It is called once, before this process
	// counts as alive. If it is nil or fails, no process of another machine can join.
	Accept func(nc *nats.Conn, subject string, lease time.Duration) error
	// Renewed is called whenever this node's lease was renewed: what it runs must have
	// ended by then. Lost is called early enough before, if it could not be renewed. nil is fine.
	Renewed func(until time.Time)
	Lost    func()
	// Full is called from time to time while the stream is full, and should end what writes to it. nil is fine.
	Full func(error)

	// Window is how many bytes of recent records to keep in memory; 4 MiB if 0.
	Window int

	// Connect is added to how the connection is made; BeforeRecords is called before
	// records are sent, and makes the journal fail. Both are for tests.
	Connect       []nats.Option
	BeforeRecords func(context.Context) error
}

const (
	defaultName   = "fermata"
	defaultWindow = 4 << 20

	recordSuffix = ".r"
	textSuffix   = ".t"
)

// A Store keeps conversations in a stream. It connects when it is first used.
type Store struct {
	o    Options
	node string // names this store among all
	base context.Context
	stop context.CancelCauseFunc // ends what the store does in the background

	connecting chan struct{} // room for one: held while connecting
	leaving    sync.WaitGroup

	mu     sync.Mutex
	link   *link // nil until connected; guarded by mu
	open   map[string]*natsJournal
	lapses int // how often what was open was begun again
	views  map[*view]struct{}
}

// A link is a connection and what was found behind it.
type link struct {
	*conn
	index       jetstream.KeyValue
	nodes       jetstream.KeyValue
	checkpoints *conn  // the same connection, and the stream of checkpoints
	lease       *lease // nil until something is opened; guarded by the store's mu
	ttl         time.Duration
	replicas    int // of the stream
	room        *provision.Room
}

var _ journal.Store = (*Store)(nil)

// ErrStoreClosed is returned by a store that was closed.
var ErrStoreClosed = errors.New("the store is closed")

// New returns a store. Nothing is connected yet. ctx is for values only: Close ends it.
func New(ctx context.Context, o Options) *Store {
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	return &Store{
		o: o, node: newNode(), base: base, stop: stop, connecting: make(chan struct{}, 1),
		open: make(map[string]*natsJournal), views: make(map[*view]struct{}),
	}
}

// Node returns the name of this store among all that use the stream.
func (s *Store) Node() string { return s.node }

func (s *Store) records(id string) string { return s.o.Name + ".c." + id + recordSuffix }
func (s *Store) texts(id string) string   { return s.o.Name + ".c." + id + textSuffix }
func (s *Store) both(id string) string    { return s.o.Name + ".c." + id + ".*" }
func (s *Store) hints(id string) string   { return s.o.Name + ".hint." + id }
func (s *Store) aside(id string) string   { return s.o.Name + ".aside." + id }

func (s *Store) checkpoint(id string) string { return s.o.Name + ".k." + id }

// Create implements Store.
func (s *Store) Create(ctx context.Context, id string, _ time.Time) (journal.Journal, error) {
	j, err := s.create(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("create conversation %s: %w", id, s.explain(err))
	}
	return j, nil
}

func (s *Store) create(ctx context.Context, id string) (*natsJournal, error) {
	if !journal.ValidID(id) {
		return nil, errors.New("not a conversation id")
	}
	l, err := s.owner(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.hasRoom(ctx, l); err != nil {
		return nil, err
	}
	lapses := s.lapsed()
	begin := meta{Epoch: 1, Node: s.node, Begin: true}
	seq, err := l.deliver(ctx, s.records(id), begin, nil, 0)
	if refusal.IsConflict(err) || errors.As(err, new(*takenError)) {
		return nil, os.ErrExist
	}
	if err != nil {
		s.letGo(l, id, begin, 0, func(ctx context.Context) { _ = s.removeFenced(ctx, l, id) }) // no process knows of it
		return nil, err
	}
	return s.enter(ctx, id, l, opened{seq: seq, meta: begin, lapses: lapses})
}

// Open implements Store.
func (s *Store) Open(ctx context.Context, id string) (journal.Journal, error) {
	var j *natsJournal
	var other *journal.LockedError // who is to be joined
	err := journal.WaitForLock(ctx, func() error {
		var err error
		j, err = s.take(ctx, id)
		if s.o.Join && errors.As(err, &other) && other.Joinable() {
			return nil
		}
		other = nil
		return err
	})
	if err == nil && other != nil {
		err = other
	}
	if err != nil && ctx.Err() != nil { // the library does not say why
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation %s: %w", id, s.explain(err))
	}
	return j, nil
}

// take opens a conversation that no process has open.
func (s *Store) take(ctx context.Context, id string) (*natsJournal, error) {
	l, err := s.owner(ctx)
	if err != nil {
		return nil, err
	}
	for {
		lapses := s.lapsed()
		m, err := s.free(ctx, l, id)
		if err != nil {
			return nil, err
		}
		begin := m.after()
		begin.Epoch, begin.Node, begin.Begin, begin.Closed = m.Epoch+1, s.node, true, false
		seq, err := l.deliver(ctx, s.records(id), begin, nil, m.seq)
		if refusal.IsConflict(err) || errors.As(err, new(*takenError)) {
			continue // another process was faster
		}
		if err != nil {
			s.letGo(l, id, begin, m.seq, nil)
			return nil, err
		}
		begin.Prev = m.seq
		j, err := s.recover(ctx, l, id, opened{seq: seq, before: m.seq, meta: begin, lapses: lapses})
		if errors.As(err, new(*takenError)) {
			continue
		}
		return j, err
	}
}

// after returns the meta of a message of records that follows this one.
func (m *stored) after() meta {
	return meta{Epoch: m.Epoch, Node: m.Node, Last: m.Last, Bytes: m.Bytes, Closed: m.Closed, Archived: m.Archived}
}

// free returns the last message of records of a conversation that no process has open.
func (s *Store) free(ctx context.Context, l *link, id string) (*stored, error) {
	m, err := s.lastRecords(ctx, l, id)
	if err != nil {
		return nil, err
	}
	owner, owned, err := s.ownerOf(ctx, l, id, m)
	if err == nil && !owned && !m.Closed && m.Node != s.node {
		owner, owned, err = l.endLease(ctx, m.Node)
	}
	if err != nil {
		return nil, err
	}
	if owned {
		return nil, &journal.LockedError{Owner: owner}
	}
	return m, nil
}

// lastRecords returns the last message of records of a conversation.
func (s *Store) lastRecords(ctx context.Context, l *link, id string) (*stored, error) {
	if !journal.ValidID(id) {
		return nil, journal.ErrNotFound
	}
	m, err := l.last(ctx, s.records(id))
	if errors.Is(err, errNoMessage) {
		return nil, journal.ErrNotFound
	}
	if err == nil && m.err != nil {
		return nil, m.err
	}
	return m, err
}

// Repair implements Store. Messages are the server's to keep; what a reader cannot take is reported.
func (s *Store) Repair(ctx context.Context, id string) (journal.Recovery, error) {
	j, err := s.Open(ctx, id)
	if err != nil {
		return journal.Recovery{}, err
	}
	return j.Recovery(), j.Close()
}

// Owner implements Store.
func (s *Store) Owner(ctx context.Context, id string) (journal.Owner, bool, error) {
	owner, owned, err := s.lookForOwner(ctx, id)
	if err != nil {
		return journal.Owner{}, false, fmt.Errorf("look at conversation %s: %w", id, s.explain(err))
	}
	return owner, owned, nil
}

func (s *Store) lookForOwner(ctx context.Context, id string) (journal.Owner, bool, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return journal.Owner{}, false, err
	}
	m, err := s.lastRecords(ctx, l, id)
	if err != nil {
		return journal.Owner{}, false, err
	}
	return s.ownerOf(ctx, l, id, m)
}

// ownerOf returns who has a conversation open whose last message is given.
func (s *Store) ownerOf(ctx context.Context, l *link, id string, m *stored) (journal.Owner, bool, error) {
	if m.Closed {
		return journal.Owner{}, false, nil
	}
	if m.Node == s.node {
		s.mu.Lock()
		defer s.mu.Unlock()
		return l.self(), s.open[id] != nil, nil
	}
	return l.alive(ctx, m.Node)
}

// Watch implements Store. It cannot report.
func (s *Store) Watch(context.Context, string) (<-chan struct{}, func()) { return nil, func() {} }

// Stat implements Store.
func (s *Store) Stat(ctx context.Context, id string) (journal.Info, error) {
	in, err := s.stat(ctx, id)
	if err != nil {
		return journal.Info{}, fmt.Errorf("look at conversation %s: %w", id, s.explain(err))
	}
	return in, nil
}

func (s *Store) stat(ctx context.Context, id string) (journal.Info, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return journal.Info{}, err
	}
	if !journal.ValidID(id) {
		return journal.Info{}, journal.ErrNotFound
	}
	m, err := l.last(ctx, s.both(id))
	if errors.Is(err, errNoMessage) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return journal.Info{}, err
	}
	return m.info(id), nil
}

func (m *stored) info(id string) journal.Info {
	return journal.Info{ID: id, Modified: m.time, Size: m.Bytes, Archived: m.Archived}
}

// Archive implements Store.
func (s *Store) Archive(ctx context.Context, id string) error {
	if err := s.setArchived(ctx, id, true); err != nil {
		return fmt.Errorf("archive conversation %s: %w", id, s.explain(err))
	}
	return nil
}

// Unarchive implements Store.
func (s *Store) Unarchive(ctx context.Context, id string) error {
	if err := s.setArchived(ctx, id, false); err != nil {
		return fmt.Errorf("unarchive conversation %s: %w", id, s.explain(err))
	}
	return nil
}

func (s *Store) setArchived(ctx context.Context, id string, archived bool) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	m, err := s.free(ctx, l, id)
	if err != nil || m.Archived == archived {
		return err
	}
	next := m.after()
	next.Epoch, next.Node, next.Begin, next.Closed, next.Archived = m.Epoch+1, s.node, true, true, archived
	_, err = l.deliver(ctx, s.records(id), next, nil, m.seq)
	return err
}

// Abandon leaves everything as the death of this process would, its lease included. It is for tests of what comes after.
func (s *Store) Abandon() {
	s.mu.Lock()
	l := s.link
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	s.stop(ErrStoreClosed)
	for _, j := range open {
		j.Abandon()
	}
	if l == nil {
		return
	}
	s.leaving.Wait()
	if l.lease != nil {
		<-l.lease.done
	}
	l.nc.Close()
}

// Close ends the connection. Journals that are still open fail.
func (s *Store) Close() error {
	s.stop(ErrStoreClosed)
	s.mu.Lock()
	l := s.link
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, j := range open {
		j.Close()
	}
	if l == nil {
		return nil
	}
	s.leaving.Wait()
	if l.lease != nil {
		l.lease.end()
	}
	l.nc.Close()
	return nil
}
