package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/regular"
)

// ErrServed says that another process serves this home already.
var ErrServed = errors.New("another process serves this home already")

// A Served is the process that owns conversations for others.
type Served struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`

	// OnDemand says that another process started it because it needed one, and that it does nothing else.
	OnDemand bool `json:"on_demand,omitempty"`
}

// servePath is the file that is locked by the process that serves, and that says where.
func servePath(dir string) string { return filepath.Join(dir, "serve-"+machine()+".lock") }

// ClaimServe makes this process the one that serves, for as long as it lives or until the returned function is
// called. If another one is, the error is ErrServed.
func ClaimServe(dir string, s Served) (leave func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := regular.OpenFile(servePath(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(serveLook) { // another process may just be looking: see FindServe
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || listens(dir) || time.Since(began) > claimWait {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrServed
		}
		return nil, err
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		_ = f.Truncate(0)
		f.Close()
	}, nil
}

// ClaimBeside is ClaimServe, and if may is set, it is no error that a process serves which a client started on demand: other is
// that one then.
func ClaimBeside(dir string, s Served, may bool) (other Served, leave func(), err error) {
	leave, err = ClaimServe(dir, s)
	if err == nil {
		return Served{}, leave, nil
	}
	other, _ = FindServe(dir)
	if !errors.Is(err, ErrServed) || !may || !other.OnDemand {
		return Served{}, nil, fmt.Errorf("%w: process %d", err, other.PID)
	}
	return other, func() {}, nil
}

// awaitEvery is how often a process that waits to serve looks whether the other one has ended.
const awaitEvery = 2 * time.Second

// AwaitServe is ClaimServe that waits until no other process serves, or ctx ends.
func AwaitServe(ctx context.Context, dir string, s Served) (leave func(), err error) {
	look := time.NewTicker(awaitEvery)
	defer look.Stop()
	for {
		if _, served := FindServe(dir); !served {
			if leave, err = ClaimServe(dir, s); !errors.Is(err, ErrServed) {
				return leave, err
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return func() {}, context.Cause(ctx)
		}
	}
}

// FindServe returns the process that serves, if one does.
func FindServe(dir string) (Served, bool) {
	s, ok := lastServed(dir)
	if !ok {
		return Served{}, false
	}
	f, err := regular.Open(servePath(dir))
	if err != nil {
		return Served{}, false
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil { // it has died
		return Served{}, false
	}
	return s, true
}

// lastServed returns the process that said last that it serves. It may have died.
func lastServed(dir string) (s Served, ok bool) {
	text, err := regular.ReadFile(servePath(dir))
	if err != nil || json.Unmarshal(text, &s) != nil || s.Address == "" {
		return Served{}, false
	}
	return s, true
}

// listens reports whether that process accepts clients.
func listens(dir string) bool {
	s, ok := lastServed(dir)
	if !ok {
		return false
	}
	conn, err := dial(s.Address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// claimWait is how long others may look at the file, or another process may have it locked before it accepts clients.
const claimWait = 10 * time.Second

// How long a process may take to begin to serve, and how often it is looked for.
const (
	serveWait = time.Minute
	serveLook = 10 * time.Millisecond
)

// DialServe connects to the process that serves. If there is none, start starts one; the
// function that it returns says whether that has ended, and why.
func DialServe(ctx context.Context, dir string, o Options, start func() (ended func() error, err error)) (*Engine, error) {
	began := time.Now()
	ended := func() error { return nil }
	for started := false; ; {
		if s, ok := FindServe(dir); ok {
			e, err := Dial(ctx, s.Address, o)
			if err == nil || final(err) {
				return e, err
			}
			if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrLost) {
				return nil, err
			}
		} else if !started {
			var err error
			if ended, err = start(); err != nil {
				return nil, fmt.Errorf("start fermata serve: %w", err)
			}
			started = true
		} else if err := ended(); err != nil {
			return nil, fmt.Errorf("fermata serve: %w", err)
		}
		if time.Since(began) > serveWait {
			return nil, fmt.Errorf("fermata serve did not begin within %v", serveWait)
		}
		select {
		case <-time.After(serveLook):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
