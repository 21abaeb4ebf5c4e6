//go:build unix

package proc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Options set a Spawner up. The zero value is good.
type Options struct {
	// Namespace runs each command in a PID namespace of its own, with its own
	// /proc, where the kernel allows that. It cannot then signal its shim, and
	// the kernel itself ends the tree with the shim, whatever happens. It is off
	// by default because commands notice: they do not see processes of other
	// commands (kill, ps and lsof of a server started earlier fail), mounts they
	// make vanish with them, and for an ordinary user, who needs a user namespace
	// for it, sudo and other set-uid programs stop working and files of other
	// users seem to belong to nobody.
	Namespace bool
}

// Spawner starts commands. It keeps one shim ready for the next command, once
// Warm was called or a first command has begun, and another one for commands with
// a user namespace, once the first of those has. It is safe for concurrent use.
type Spawner struct {
	namespaced bool

	mu     sync.Mutex
	spare  chan *shim // guarded by mu; delivers one shim, or nil; nil: no spare
	inner  chan *shim // guarded by mu; the same for Spec.UserNamespace
	closed bool       // guarded by mu
}

// kind is what a shim was started for: it starts its stage before it knows the
// command.
type kind bool

const (
	plain kind = false
	inner kind = true // with Spec.UserNamespace
)

// spareOf returns the place of a spare. Its caller holds mu.
func (s *Spawner) spareOf(k kind) *chan *shim {
	if k == inner {
		return &s.inner
	}
	return &s.spare
}

// NewSpawner returns a Spawner and makes this process a child subreaper: what a
// command leaves behind when it has killed its shim becomes our child and can be
// ended. Children of this process that lead their own session must therefore be
// started through a Spawner, or they may be taken for such orphans; and so must
// programs that leave daemons behind, or nobody waits for those.
func NewSpawner(o Options) (*Spawner, error) {
	if err := becomeSubreaper(); err != nil {
		return nil, fmt.Errorf("adopt orphans: %w", err)
	}
	return &Spawner{namespaced: o.Namespace && namespaceWorks()}, nil
}

// Namespaced reports whether commands get a PID namespace of their own.
func (s *Spawner) Namespaced() bool { return s.namespaced }

// Warm starts a spare shim if there is none. It does not block.
func (s *Spawner) Warm() { s.warm(plain) }

func (s *Spawner) warm(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spare := s.spareOf(k)
	if s.closed || *spare != nil {
		return
	}

	ready := make(chan *shim, 1) // taken at most once, so that the sender never blocks
	*spare = ready
	go func() {
		sh, err := s.newShim(k)
		if err != nil {
			sh = nil // the next Start tries again and tells
		}
		ready <- sh
	}()
}

// Close ends the spare shims and waits for them. Commands that run are not touched.
// Calling it again does nothing.
func (s *Spawner) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, k := range []kind{plain, inner} {
		if sh := s.takeSpareOf(k); sh != nil {
			sh.dismiss()
		}
	}
}

func (s *Spawner) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// takeSpare gives the plain spare to one caller only, or nil.
func (s *Spawner) takeSpare() *shim { return s.takeSpareOf(plain) }

func (s *Spawner) takeSpareOf(k kind) *shim {
	s.mu.Lock()
	spare := s.spareOf(k)
	ready := *spare
	*spare = nil
	s.mu.Unlock()
	if ready == nil {
		return nil
	}
	return <-ready
}

func (s *Spawner) newShim(k kind) (*shim, error) {
	attr, part := shimAttr(), partSupervise
	if s.namespaced {
		namespaceAttr(attr)
		part = partNamespace
	}
	if k == inner {
		part += innerSuffix
	}
	return startShim(part, attr)
}

// take returns a shim that is ready for an order.
func (s *Spawner) take(ctx context.Context, k kind, token string) (*shim, error) {
	if sh := s.takeSpareOf(k); sh != nil {
		err := sh.hello(ctx, token, s.namespaced)
		if err == nil {
			return sh, nil
		}

		sh.dismiss() // somebody killed it while it waited
		if ctx.Err() != nil {
			return nil, err
		}
	}

	sh, err := s.newShim(k)
	if err != nil {
		return nil, err
	}

	if err := sh.hello(ctx, token, s.namespaced); err != nil {
		sh.dismiss()
		return nil, err
	}
	return sh, nil
}

// Start prepares a command and returns with its identity known, but nothing of
// it runs before Release. The command ends with ctx, or with Stop; the caller
// must Wait for it. An error means that nothing was or will be started; errors
// of the command itself, such as a missing program, are in the Result.
func (s *Spawner) Start(ctx context.Context, spec Spec, sink Sink) (*Command, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("start command: no arguments")
	}
	if s.isClosed() {
		return nil, ErrClosed
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}

	token := rand.Text()
	stage, err := stageOrderOf(spec, token)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	k := kind(spec.UserNamespace)
	sh, err := s.take(ctx, k, token)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}

	c, err := newCommand(spec, sh, stage, sink)
	if err != nil {
		sh.dismiss()
		return nil, fmt.Errorf("start command: %w", err)
	}
	c.refill = func() { s.warm(k) }
	go c.run(ctx)
	return c, nil
}

// Run starts a command, releases it at once and waits for its end.
func (s *Spawner) Run(ctx context.Context, spec Spec, sink Sink) Result {
	c, err := s.Start(ctx, spec, sink)
	if err != nil {
		return Result{ExitCode: -1, Err: err}
	}
	c.Release()
	return c.Wait()
}

// stageOrderOf translates the command for the stage.
func stageOrderOf(spec Spec, token string) (*stageOrder, error) {
	if spec.Confine != nil && !json.Valid(spec.Confine) {
		return nil, errors.New("confine: not valid JSON")
	}

	dir := spec.Dir
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find working directory: %w", err)
		}
		dir = wd
	}
	env := slices.Clone(spec.Env)
	if spec.Env == nil {
		env = append(os.Environ(), "PWD="+dir)
	}
	return &stageOrder{
		Argv:    bytesOf(spec.Argv),
		Dir:     []byte(dir),
		Env:     bytesOf(mark(env, token)),
		Confine: spec.Confine,
	}, nil
}

// tokenVariable marks the processes of a command. Commands of a fermata that is
// itself a command carry the tokens of both.
const tokenVariable = "FERMATA_COMMAND"

// mark adds token to env, which it may change, and drops all but the last of
// several values of one variable.
func mark(env []string, token string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = i
		if name == tokenVariable && value != "" {
			token = value + "," + token
		}
	}
	kept := env[:0]
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if last[name] == i && name != tokenVariable {
			kept = append(kept, kv)
		}
	}
	return append(kept, tokenVariable+"="+token)
}
