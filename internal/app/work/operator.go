package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// An Operator looks at a fleet and steers it.
type Operator struct {
	store store.Opened
	nats  *nats.Store
	link  nats.Link
	queue *fleet.Queue
}

// OpenOperator connects to the fleet that the configuration names. The caller calls Close.
func OpenOperator(ctx context.Context) (*Operator, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	settings, err := store.Settings(home)
	if err != nil {
		return nil, err
	}
	if settings.URL == "" {
		return nil, errNoFleet
	}
	o := &Operator{store: store.Open(ctx, store.Place{Home: home, Store: settings})}
	o.nats, _ = o.store.Shared()
	if o.link, err = o.nats.Link(ctx); err == nil {
		o.queue, err = fleet.OpenQueue(ctx, o.link)
	}
	if err != nil {
		o.Close()
		return nil, o.nats.Explain(err)
	}
	return o, nil
}

// Close ends the connection.
func (o *Operator) Close() { o.store.Close() }

// A Status is what a fleet does.
type Status struct {
	Nodes   []nats.Node     // that take part
	Others  int             // processes that have conversations open and take no part
	Queue   []fleet.Waiting // the oldest first
	More    uint64          // that are not in Queue
	Failed  []fleet.Waiting // the list of failed work
	Store   nats.Usage
	Compare time.Time // the time of this machine, to compare with
}

// Status looks at the fleet.
func (o *Operator) Status(ctx context.Context) (Status, error) {
	s := Status{Compare: time.Now()}
	all, err := o.nats.Nodes(ctx)
	if err != nil {
		return s, err
	}
	for _, n := range all {
		if n.Turns > 0 {
			s.Nodes = append(s.Nodes, n)
		} else {
			s.Others++
		}
	}
	list, more, err := o.queue.List(ctx)
	if err != nil {
		return s, o.nats.Explain(err)
	}
	s.More = more
	for _, w := range list {
		if w.Failed {
			s.Failed = append(s.Failed, w)
		} else {
			s.Queue = append(s.Queue, w)
		}
	}
	s.Store, err = o.nats.Usage(ctx)
	return s, err
}

// WaitsFor says what some work waits for.
func (s Status) WaitsFor(w fleet.Waiting) string {
	suited, free := 0, 0
	for _, n := range s.Nodes {
		if fleet.TakesPart(n, w.Label) {
			suited++
			if n.Running() < n.Turns {
				free++
			}
		}
	}
	switch {
	case w.Err != nil:
		return w.Err.Error()
	case suited == 0 && w.Label != "":
		return "no node takes part with the label " + w.Label
	case suited == 0:
		return "no node takes part"
	case len(w.Failures) > 0:
		last := w.Failures[len(w.Failures)-1]
		return fmt.Sprintf("failed on %d of 3: %s: %s", len(w.Failures), cmp.Or(last.Node, "a node"), last.Why)
	case w.Last != nil:
		return fmt.Sprintf("%s: %s", w.Last.Node, w.Last.Why)
	case free == 0:
		return "all nodes that take it are busy"
	}
	return "a node is about to take it"
}

// Retry submits failed work again, Drop removes it, or other work that waits.
func (o *Operator) Retry(ctx context.Context, number uint64) error {
	return o.nats.Explain(o.queue.Retry(ctx, number))
}

// Drop removes work that waits or has failed.
func (o *Operator) Drop(ctx context.Context, number uint64) (fleet.Waiting, error) {
	w, err := o.queue.Drop(ctx, number)
	return w, o.nats.Explain(err)
}

// Find returns the node of a name, or of NAME/PID.
func (o *Operator) Find(ctx context.Context, name string) (nats.Node, error) {
	all, err := o.nats.Nodes(ctx)
	if err != nil {
		return nats.Node{}, err
	}
	name, pid, _ := strings.Cut(name, "/")
	var found, called []nats.Node
	for _, n := range all {
		if n.Turns == 0 || n.Name != name {
			continue
		}
		called = append(called, n)
		if pid == "" || strconv.Itoa(n.PID) == pid {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && len(called) == 0:
		return nats.Node{}, fmt.Errorf("there is no node %s: see fermata fleet nodes", name)
	}
	var names []string
	for _, n := range called {
		names = append(names, fmt.Sprintf("%s/%d", n.Name, n.PID))
	}
	return nats.Node{}, fmt.Errorf("say which node: %s", strings.Join(names, ", "))
}

// controlTime is how long a node has to answer.
const controlTime = 5 * time.Second

// Drain asks a node to take nothing more, and to end when its turns have ended; turns that run after a time are interrupted then, unless that is 0.
func (o *Operator) Drain(ctx context.Context, n nats.Node, within time.Duration) error {
	ask, err := json.Marshal(control{Drain: true, Within: within})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	m, err := o.link.Conn.RequestWithContext(ctx, nats.ControlSubject(o.link.Name, n.ID), ask)
	if errors.Is(err, natsgo.ErrNoResponders) {
		return fmt.Errorf("node %s runs a version of fermata that cannot be drained (%s): end it with SIGTERM, which interrupts its turns", n.Name, cmp.Or(n.Version, "before 0.1"))
	}
	if err != nil {
		return fmt.Errorf("ask node %s: %w", n.Name, o.nats.Explain(err))
	}
	var answer struct{ Error string }
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error != "" {
		return fmt.Errorf("node %s answered %q", n.Name, answer.Error)
	}
	return nil
}

// Await calls see with a node whenever that has changed, until the node has left or ctx ends.
func (o *Operator) Await(ctx context.Context, id string, see func(nats.Node)) error {
	for {
		all, err := o.nats.Nodes(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(n nats.Node) bool { return n.ID == id })
		if i < 0 {
			return nil
		}
		see(all[i])
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
