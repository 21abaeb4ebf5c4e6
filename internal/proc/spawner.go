//go:build unix

package proc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// Spawner starts commands. It keeps one shim ready for the next command of each
// kind that it has started. It is safe for concurrent use.
type Spawner struct {
	mu     sync.Mutex
	spares map[kind]chan *shim // guarded by mu; each delivers one shim, or nil
	noPIDs bool                // guarded by mu; no PID namespace can be had here
	closed bool                // guarded by mu

	lease   time.Duration         // guarded by mu; until when commands may run, as now; 0 if there is no end
	running map[*Command]struct{} // guarded by mu
}

// kind is what a shim was started for: it starts its stage before it knows the
// command.
type kind struct {
	user bool // Spec.UserNamespace
	pids bool // Spec.PIDNamespace

	input bool // Spec.Input

	// scoped is for confined commands without a PID namespace: neither they nor
	// the shim's killing thread can signal processes outside the tree.
	scoped bool

	// staged is for commands that are confined, or that live in a user namespace:
	// something of ours has to run in the process that becomes the command.
	staged bool
}

// NewSpawner returns a Spawner and makes this process a child subreaper: what a
// command leaves behind when it has killed its shim becomes our child and can be
// ended. Children of this process that lead their own session must therefore be
// started through a Spawner, or they may be taken for such orphans; and so must
// programs that leave daemons behind, or no caller waits for those.
func NewSpawner() (*Spawner, error) {
	if err := becomeSubreaper(); err != nil {
		return nil, fmt.Errorf("adopt orphans: %w", err)
	}
	return &Spawner{spares: map[kind]chan *shim{}}, nil
}

// warm starts a spare shim if there is none. It does not block.
func (s *Spawner) warm(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.spares[k] != nil || k.input { // few commands read, and they run for long
		return
	}

	ready := make(chan *shim, 1) // taken at most once, so that the sender never blocks
	s.spares[k] = ready
	go func() {
		sh, err := newShim(k)
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
	kinds := slices.Collect(maps.Keys(s.spares))
	s.mu.Unlock()
	for _, k := range kinds {
		if sh := s.takeSpare(k); sh != nil {
			sh.dismiss()
		}
	}
}

func (s *Spawner) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// takeSpare gives the spare of a kind to one caller only, or nil.
func (s *Spawner) takeSpare(k kind) *shim {
	s.mu.Lock()
	ready := s.spares[k]
	delete(s.spares, k)
	s.mu.Unlock()
	if ready == nil {
		return nil
	}
	return <-ready
}

// kindFor is what a command asks for and this system gives.
func (s *Spawner) kindFor(spec Spec) kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := spec.PIDNamespace && !s.noPIDs
	return kind{
		user: spec.UserNamespace, pids: pids, input: spec.Input,
		scoped: spec.Confine != nil && !pids,
		staged: needsStage || spec.Confine != nil || spec.UserNamespace,
	}
}

func (s *Spawner) withoutPIDs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noPIDs = true
}

// take returns a shim that is ready for an order. A PID namespace is tried by
// making it, which costs nothing where it works, as it nearly always does.
func (s *Spawner) take(ctx context.Context, k kind, confined bool, token string) (*shim, error) {
	if sh := s.takeSpare(k); sh != nil {
		err := sh.hello(ctx, token)
		if err == nil {
			return sh, nil
		}

		sh.dismiss() // another process killed it while it waited
		if ctx.Err() != nil {
			return nil, err
		}
	}

	sh, err := fresh(ctx, k, token)
	if err == nil || !k.pids || ctx.Err() != nil {
		return sh, err
	}
	k.pids, k.scoped = false, confined
	if sh, err = fresh(ctx, k, token); err == nil {
		s.withoutPIDs()
	}
	return sh, err
}

// fresh starts a shim and waits until it is ready.
func fresh(ctx context.Context, k kind, token string) (*shim, error) {
	sh, err := newShim(k)
	if err != nil {
		return nil, err
	}

	if err := sh.hello(ctx, token); err != nil {
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
	if spec.Input && spec.Pty != nil {
		return nil, errors.New("start command: a terminal and a pipe for its input")
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
	sh, err := s.take(ctx, s.kindFor(spec), spec.Confine != nil, token)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	s.warm(sh.kind) // now and not later: the next command may follow at once

	c, err := newCommand(spec, sh, stage, sink)
	if err != nil {
		sh.dismiss()
		return nil, fmt.Errorf("start command: %w", err)
	}
	sh.id.Mark = stage.Mark
	c.order.Until = s.track(c)
	go func() {
		defer s.untrack(c)
		c.run(ctx)
	}()
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
		Argv:    bytesOf(slices.Concat(spec.Wrapper, spec.Argv)),
		Dir:     []byte(dir),
		Env:     bytesOf(mark(env, token)),
		Confine: spec.Confine,
		Mark:    tree.NewMark(),
		Socket:  spec.Serve != nil,
	}, nil
}

// mark adds token to env, which it may change, and drops all but the last of
// several values of one variable.
func mark(env []string, token string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = i
		if name == tree.TokenVariable && value != "" {
			token = value + "," + token
		}
	}
	kept := env[:0]
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if last[name] == i && name != tree.TokenVariable {
			kept = append(kept, kv)
		}
	}
	return append(kept, tree.TokenVariable+"="+token)
}
