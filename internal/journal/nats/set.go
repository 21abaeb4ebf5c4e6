package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
)

// ErrSetting says that a setting of the stream, or its value, is not one that can be set.
var ErrSetting = errors.New("not a setting of the stream")

// setters change what is fixed when the stream is made.
var setters = map[string]func(*Store, context.Context, *link, int64) error{
	"max_bytes": func(s *Store, ctx context.Context, l *link, n int64) error {
		return provision.SetMaxBytes(ctx, l.js, s.o.Name, n)
	},
	"replicas": func(s *Store, ctx context.Context, l *link, n int64) error {
		if n < 1 || n > 5 {
			return fmt.Errorf("%w: replicas are 1 to 5", ErrSetting)
		}
		return provision.SetReplicas(ctx, l.js, s.o.Name, int(n))
	},
	"lease_ms": func(s *Store, ctx context.Context, l *link, n int64) error {
		inUse := func() error { return s.leasesInUse(ctx) }
		return provision.SetLease(ctx, l.js, s.o.Name, time.Duration(n)*time.Millisecond, inUse)
	},
}

// Settings returns the names of what Set changes.
func Settings() []string { return slices.Sorted(maps.Keys(setters)) }

// Set changes what was fixed when the stream was made.
func (s *Store) Set(ctx context.Context, name string, value int64) error {
	set := setters[name]
	if set == nil || value < 0 {
		return fmt.Errorf("%w: %s %d; the settings are %s", ErrSetting, name, value, strings.Join(Settings(), ", "))
	}
	l, err := s.connect(ctx)
	if err == nil {
		err = set(s, ctx, l, value)
	}
	if err != nil {
		return fmt.Errorf("set %s: %w", name, s.explain(err))
	}
	return nil
}

// leasesInUse returns an error that names the processes which have leases.
func (s *Store) leasesInUse(ctx context.Context) error {
	nodes, err := s.listNodes(ctx)
	if err != nil || len(nodes) == 0 {
		return err
	}
	var names []string
	for _, n := range nodes {
		name := fmt.Sprintf("process %d on %s", n.PID, n.Host)
		if n.Name != "" {
			name += " (node " + n.Name + ")"
		}
		names = append(names, name)
	}
	return fmt.Errorf("end these first, which rely on the leases that they have: %s", strings.Join(names, ", "))
}
