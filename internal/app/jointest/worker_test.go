// Package jointest has processes share conversations at random: they join, leave, are stopped
// and killed. Its test binary runs itself as each of them.
package jointest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/remote"
	_ "github.com/fermata-agent/fermata/internal/shim" // a process that only runs a command ends in there
	p "github.com/fermata-agent/fermata/protocol"
)

// conversations is how many the processes share.
const conversations = 3

// What a process is started as.
const (
	roleVar  = "JOINTEST_ROLE" // create, work or settle
	talksVar = "JOINTEST_CONVERSATIONS"
	seedVar  = "JOINTEST_SEED"
	logsVar  = "JOINTEST_LOGS"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play is the main of the processes.
func play(role string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	a, err := app.Open(context.Background(), app.Options{Flags: config.Flags{Demo: true, Bypass: true}, Client: role, Version: "test"})
	if err != nil {
		return err
	}
	defer a.Close()
	var ids []p.ConversationID
	for _, id := range strings.Fields(os.Getenv(talksVar)) {
		ids = append(ids, p.ConversationID(id))
	}
	switch role {
	case "create":
		for range conversations {
			s, err := a.NewSettings(a.Config.Settings)
			if err != nil {
				return err
			}
			id, err := a.Engine.Create(ctx, s)
			if err != nil {
				return err
			}
			fmt.Println(id)
		}
		return nil
	case "settle":
		return settle(ctx, a.Engine, ids)
	}
	context.AfterFunc(ctx, a.Engine.Leave)
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		return err
	}
	name := filepath.Join(os.Getenv(logsVar), strconv.FormatUint(seed, 10))
	w, err := newWorker(a.Engine, name)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for _, id := range ids {
		running.Go(func() { w.follow(ctx, id) })
	}
	w.act(ctx, rand.New(rand.NewPCG(seed, 1)), seed, ids)
	running.Wait()
	return nil
}

// settle opens conversations, which recovers them, and stops what is left in them.
func settle(ctx context.Context, e engine.Engine, ids []p.ConversationID) error {
	for _, id := range ids {
		if _, err := e.Resume(ctx, id); err != nil {
			return err
		}
		receipt, err := e.Submit(ctx, id, p.Interrupt{})
		if errors.Is(err, engine.ErrNothingToStop) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := engine.FollowTurn(ctx, e, id, receipt.Turn, receipt.Seq, nil); err != nil {
			return err
		}
	}
	return nil
}

// A worker writes down what it saw and did, a line for each.
type worker struct {
	e   engine.Engine
	mu  sync.Mutex
	log *os.File // guarded by mu
}

func newWorker(e engine.Engine, name string) (*worker, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &worker{e: e, log: f}, err
}

// note writes a line; what a killed process wrote stays.
func (w *worker) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.log, format+"\n", args...)
}

// follow follows a conversation until ctx ends. If its owner does not respond, it tries again where it was.
func (w *worker) follow(ctx context.Context, id p.ConversationID) {
	after := p.Cursor(0)
	for ctx.Err() == nil {
		seen := map[p.ItemID]int64{}
		for ev, err := range w.e.Subscribe(ctx, id, after) {
			switch b := ev.Body.(type) {
			case nil:
				if ctx.Err() == nil && !passes(err) {
					w.note("bad follow %s: %v", id, err)
				}
			case *p.Delta:
				if b.Offset != seen[b.Item] {
					w.note("bad delta %s %s: at %d, want %d", id, b.Item, b.Offset, seen[b.Item])
				}
				seen[b.Item] = b.Offset + int64(len(b.Text))
			default:
				w.note("event %s %d %s", id, ev.Seq, sum(ev))
				after = ev.Seq
			}
		}
		pause(ctx, 100)
	}
}

// sum tells one event from others.
func sum(ev p.Event) string {
	text, err := json.Marshal(ev)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// passes reports whether an error is one that those get who share a conversation with processes that are stopped
// and killed.
func passes(err error) bool {
	return errors.As(err, new(*remote.UnresponsiveError)) || errors.As(err, new(*engine.LockedError)) ||
		errors.Is(err, remote.ErrLost) || errors.Is(err, remote.ErrLeaving) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// act does random things until ctx ends.
func (w *worker) act(ctx context.Context, rng *rand.Rand, seed uint64, ids []p.ConversationID) {
	for n := 0; ctx.Err() == nil; n++ {
		id := ids[rng.IntN(len(ids))]
		text := fmt.Sprintf("talk %d %d-%d", 1+rng.IntN(10), seed, n)
		if rng.IntN(3) == 0 {
			text = fmt.Sprintf("run: echo %d-%d; sleep 0.%d; echo over", seed, n, rng.IntN(5))
		}
		when := []p.WhenBusy{p.Steer, p.Queue, p.Replace}[rng.IntN(3)]
		switch rng.IntN(6) {
		case 0:
			if _, err := w.e.Submit(ctx, id, p.Interrupt{}); err != nil && !errors.Is(err, engine.ErrNothingToStop) && ctx.Err() == nil && !passes(err) {
				w.note("bad interrupt %s: %v", id, err)
			}
		case 1:
			if _, err := w.e.Resume(ctx, id); err != nil && ctx.Err() == nil && !passes(err) {
				w.note("bad resume %s: %v", id, err)
			}
		default:
			_, err := w.e.Submit(ctx, id, p.UserTurn{Content: p.Text(text), WhenBusy: when})
			switch {
			case err == nil:
				w.note("sent %s %s", id, text)
			case ctx.Err() == nil && !passes(err):
				w.note("bad send %s: %v", id, err)
			}
		}
		pause(ctx, rng.IntN(600))
	}
}

func pause(ctx context.Context, ms int) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
}
