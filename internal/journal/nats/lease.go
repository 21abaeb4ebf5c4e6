package nats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/protocol"
)

// DefaultLease is how long a node counts as alive after it last said so. Servers that have lost their leader elect another within 4
// to 9 s, and sometimes need a second election: a node that can renew before stopAfter is over fails no turn because of that.
const DefaultLease = 30 * time.Second

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

// renewLimit is the longest time between renewals.
const renewLimit = time.Second

// renewal returns how often a lease is renewed.
func renewal(ttl time.Duration) time.Duration { return min(ttl*renewEvery/leaseParts, renewLimit) }

// A lease says that this store is alive: a key that the servers delete when it was
// not written for its time to live.
//
// Each renewal names the one before it, and is refused if the lease has ended: because the servers
// deleted it, or because another node did before it took something over (endLease). So a node always
// learns that its lease has ended, and then has to begin its conversations again (lapse) before it
// runs anything.
type lease struct {
	store   *Store
	link    *link
	base    context.Context // for values
	node    string
	latest  uint64 // revision of the last renewal; 0 before the first
	lapsed  bool   // it has ended, and not everything was begun again
	member  Member
	owner   journal.Owner
	renewed func(until time.Time) // may be nil
	lost    func()                // the same
	timer   *time.Timer           // calls lost; may be nil
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
	le := &lease{store: s, link: l, base: s.base, node: s.node, member: s.o.Member, owner: owner, renewed: s.o.Renewed, lost: s.o.Lost, done: make(chan struct{})}
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
	owner := protocol.Self(address)
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
		return protocol.Self("")
	}
	return l.lease.owner
}

// renew says that the store is alive.
func (le *lease) renew(ctx context.Context) error {
	var began time.Time
	err := errLapsed
	if !le.lapsed {
		began, err = le.put(ctx)
	}
	if errors.Is(err, errLapsed) {
		began, err = le.lapse(ctx)
	}
	if err != nil {
		return fmt.Errorf("renew the lease of this node: %w", err)
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

// value describes this process as it is now.
func (le *lease) value() []byte {
	n := Node{Owner: le.owner, Member: le.member}
	if le.member.Now != nil {
		n.Activity = le.member.Now()
	}
	value, _ := json.Marshal(n) // it is a plain value
	return value
}

// errLapsed says that the lease has ended.
var errLapsed = errors.New("the lease of this node has ended")

// put renews the lease once. It returns a time before the servers' one.
func (le *lease) put(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, le.link.ttl/2, refusal.ErrNoAnswer)
	defer cancel()
	for {
		began := time.Now()
		revision, err := le.update(ctx)
		switch {
		case err == nil:
			le.latest = revision
			return began, nil
		case ctx.Err() != nil:
			return began, context.Cause(ctx)
		case errors.Is(err, refusal.ErrNoAnswer):
			continue // it has waited
		case refusal.IsConflict(err):
		case !refusal.IsTransient(err):
			return began, err
		default: // the servers elect a leader
			select {
			case <-time.After(retryWait):
			case <-ctx.Done():
			}
			continue
		}
		// An earlier renewal may have arrived without our knowing.
		entry, err := le.link.nodes.Get(ctx, le.node)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			return began, errLapsed
		case err != nil:
			return began, err
		case isEnded(entry.Value()):
			return began, errLapsed
		case entry.Revision() <= le.latest: // from a server that is behind
			return began, refusal.ErrNoAnswer
		}
		le.latest = entry.Revision()
	}
}

// update sends a renewal once. One that a server has taken with it when it died is sent again soon, so that a lease is
// renewed as soon as the others have a leader.
func (le *lease) update(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(le.link.ttl/leaseParts, time.Second), refusal.ErrNoAnswer)
	defer cancel()
	revision, err := le.link.nodes.Update(ctx, le.node, le.value(), le.latest)
	if err != nil && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return revision, err
}

// lapse begins again after the lease has ended: what runs is ended, and then each conversation
// that is open is begun once more. What another node has taken over fails with that.
func (le *lease) lapse(ctx context.Context) (time.Time, error) {
	if le.renewed != nil && !le.lapsed {
		le.renewed(time.Now())
	}
	if le.lost != nil && !le.lapsed {
		time.AfterFunc(0, le.lost)
	}
	le.lapsed = true
	select {
	case le.store.connecting <- struct{}{}: // nothing is opened meanwhile
		defer func() { <-le.store.connecting }()
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, le.link.ttl/2, refusal.ErrNoAnswer)
	defer cancel()
	revision, err := le.claim(limited)
	if err != nil {
		return time.Time{}, err
	}
	le.latest = revision
	if err := le.store.beginAgain(limited); err != nil {
		return time.Time{}, err
	}
	le.lapsed = false
	return le.put(ctx)
}

// claim writes the lease whatever became of it.
func (le *lease) claim(ctx context.Context) (uint64, error) {
	revision, err := le.link.nodes.Create(ctx, le.node, le.value())
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return revision, err
	}
	entry, err := le.link.nodes.Get(ctx, le.node)
	if err != nil {
		return 0, err
	}
	return le.link.nodes.Update(ctx, le.node, le.value(), entry.Revision())
}

// run renews until it is stopped.
func (le *lease) run(ctx context.Context, ttl time.Duration) {
	defer close(le.done)
	defer func() {
		if le.timer != nil {
			le.timer.Stop()
		}
	}()
	var room sync.WaitGroup
	room.Go(func() { le.store.watchRoom(ctx, le.link) })
	defer room.Wait()
	tick := time.NewTicker(renewal(ttl))
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

// endedLease is the value of a lease that another node has ended.
const endedLease = `{"ended":true}`

func isEnded(value []byte) bool { return string(value) == endedLease }

// alive returns the owner that a node is, if it is alive.
func (l *link) alive(ctx context.Context, node string) (journal.Owner, bool, error) {
	owner, alive, _, err := l.lookAt(ctx, node)
	return owner, alive, err
}

// lookAt returns the owner that a node is, if it is alive, else whether its lease was ended.
func (l *link) lookAt(ctx context.Context, node string) (o journal.Owner, alive, ended bool, err error) {
	entry, err := l.nodes.Get(ctx, node)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return o, false, false, nil
	case err != nil:
		return o, false, false, err
	case isEnded(entry.Value()):
		return o, false, true, nil
	}
	if err := json.Unmarshal(entry.Value(), &o); err != nil {
		return o, false, false, fmt.Errorf("read the lease of node %s: %v", node, err)
	}
	return o, true, false, nil
}

// endLease ends the lease of a node that is not alive, for good: who said so may have been a server
// that did not know of the latest renewal. Whoever is alive after all is returned.
func (l *link) endLease(ctx context.Context, node string) (journal.Owner, bool, error) {
	_, err := l.nodes.Create(ctx, node, []byte(endedLease))
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return journal.Owner{}, false, err
	}
	owner, alive, ended, err := l.lookAt(ctx, node)
	return owner, alive || !ended, err // one that cannot be seen is there
}
