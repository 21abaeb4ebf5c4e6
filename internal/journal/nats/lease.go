package nats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
)

// DefaultLease is how long a node counts as alive after it last said so.
const DefaultLease = 1500 * time.Millisecond

// newNode makes a name that no other store has.
func newNode() string { return strings.ToLower(rand.Text()) }

// What a lease's time to live is divided into. A node that cannot renew stops its turns
// after stopAfter parts, and what it runs is dead after killAfter; the servers let others
// have its conversations after all of them. The rest is for clocks that do not go equally fast,
// and for killing.
const (
	leaseParts = 10
	renewEvery = 2
	stopAfter  = 6
	killAfter  = 8
)

// A lease says that this store is alive: a key that the servers delete when it was
// not written for its time to live.
type lease struct {
	link    *link
	base    context.Context // for values
	node    string
	value   []byte
	owner   journal.Owner
	renewed func(until time.Time) // nil if nobody wants to know
	lost    func()                // the same
	timer   *time.Timer           // calls lost; nil if nobody wants to know
	lapsed  func(context.Context) // called when it was found to have ended before it was renewed
	last    uint64                // revision of the key as it was last renewed; 0 before
	stop    context.CancelFunc
	done    chan struct{} // closed when nothing renews it any more
}

// owner returns the link after making sure that this store counts as alive.
func (s *Store) owner(ctx context.Context) (*link, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l.hasLease(s) {
		return l, nil
	}
	owner := s.self(l)
	value, err := json.Marshal(Node{owner, s.o.Member})
	if err != nil {
		return nil, err
	}
	le := &lease{link: l, base: s.base, node: s.node, value: value, owner: owner, renewed: s.o.Renewed, lost: s.o.Lost, lapsed: s.checkOwned, done: make(chan struct{})}
	if err := le.renew(ctx); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(s.base)
	le.stop = stop
	s.mu.Lock()
	l.lease = le
	s.mu.Unlock()
	go le.run(background, l.ttl) // ended and waited for by end
	return l, nil
}

// self describes this process for others, after making sure that they can join it.
func (s *Store) self(l *link) journal.Owner {
	address := ""
	if s.o.Address != nil {
		address = s.o.Address()
	}
	owner := journal.Self(address)
	owner.Lease = l.ttl
	if s.o.Accept != nil && s.o.Accept(l.nc, s.nodeSubject(), l.ttl) == nil {
		owner.Node = s.nodeSubject()
	}
	return owner
}

func (l *link) hasLease(s *Store) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.lease != nil
}

// self returns this process as its lease describes it, with the store's mutex.
func (l *link) self() journal.Owner {
	if l.lease == nil {
		return journal.Self("")
	}
	return l.lease.owner
}

// renew says that the store is alive.
func (le *lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, le.link.ttl/2)
	defer cancel()
	began := time.Now() // the servers count from later on
	lapsed, err := le.put(ctx)
	if err != nil {
		return fmt.Errorf("renew the lease of this node: %w", err)
	}
	if lapsed {
		defer le.lapsed(le.base)
	}
	part := le.link.ttl / leaseParts
	if le.renewed != nil {
		le.renewed(began.Add(killAfter * part))
	}
	if le.lost != nil {
		left := time.Until(began.Add(stopAfter * part))
		if le.timer == nil {
			le.timer = time.AfterFunc(left, le.lost)
		} else {
			le.timer.Reset(left)
		}
	}
	return nil
}

// put writes the key. It reports whether others may have taken this node for dead since it was last written: then it is not
// as it was left.
func (le *lease) put(ctx context.Context) (lapsed bool, err error) {
	last := le.last
	if last > 0 {
		le.last, err = le.link.nodes.Update(ctx, le.node, le.value, last)
		if !isConflict(err) {
			le.last = max(le.last, last)
			return false, err
		}
	}
	le.last, err = le.link.nodes.Put(ctx, le.node, le.value)
	if err != nil {
		le.last = last
	}
	return last > 0, err
}

// run renews until it is stopped.
func (le *lease) run(ctx context.Context, ttl time.Duration) {
	defer close(le.done)
	defer func() {
		if le.timer != nil {
			le.timer.Stop()
		}
	}()
	tick := time.NewTicker(ttl * renewEvery / leaseParts)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = le.renew(ctx) // the next one may work
		case <-ctx.Done():
			return
		}
	}
}

// end lets others know at once that this store is gone.
func (le *lease) end() {
	le.stop()
	<-le.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(le.base), time.Second)
	defer cancel()
	_ = le.link.nodes.Delete(ctx, le.node) // else it ends by itself
}

// alive returns the owner that a node is, if it is alive.
func (l *link) alive(ctx context.Context, node string) (journal.Owner, bool, error) {
	entry, err := l.nodes.Get(ctx, node)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return journal.Owner{}, false, nil
	}
	if err != nil {
		return journal.Owner{}, false, err
	}
	var o journal.Owner
	if err := json.Unmarshal(entry.Value(), &o); err != nil {
		return journal.Owner{}, false, fmt.Errorf("read the lease of node %s: %v", node, err)
	}
	return o, true, nil
}
