package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// locked returns an engine and a conversation that another engine has open: to
// open it is to wait for three seconds, in vain.
func locked(t *testing.T) (*enginetest.Engine, p.ConversationID) {
	store := journal.NewMemoryStore(journal.MemoryOptions{})
	owner := enginetest.New(t, enginetest.Options{Store: store, IdleAfter: -1})
	return enginetest.New(t, enginetest.Options{Store: store}), owner.Begin()
}

// resume resumes in a goroutine; the error comes out of the channel.
func resume(ctx context.Context, e engine.Engine, id p.ConversationID) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := e.Resume(ctx, id)
		done <- err
	}()
	synctest.Wait()
	return done
}

func isLocked(err error) bool {
	var locked *engine.LockedError
	return errors.As(err, &locked)
}

func TestKillWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, id := locked(t)
		opened := resume(t.Context(), e, id)
		e.Kill()
		if err := <-opened; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("resume: %v", err)
		}
	})
}

func TestCallersThatWaitForTheSameOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, id := locked(t)
		ctx, cancel := context.WithCancel(t.Context())
		one, two := resume(ctx, e, id), resume(t.Context(), e, id)
		cancel()
		if err := <-one; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
		if err := <-two; !isLocked(err) {
			t.Errorf("the one that stayed: %v", err)
		}
	})
}

// When the last caller leaves, opening is given up; one that comes just then is
// not answered with somebody else's cancelled context.
func TestCallerAfterTheLastOneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, id := locked(t)
		ctx, cancel := context.WithCancel(t.Context())
		one := resume(ctx, e, id)
		cancel()
		_, err := e.Resume(t.Context(), id)
		if !isLocked(err) {
			t.Errorf("the one that came: %v", err)
		}
		if err := <-one; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
	})
}

// A lingeringStore takes its time to give up an opening.
type lingeringStore struct {
	journal.Store
	gate chan struct{}
}

func (s lingeringStore) Open(ctx context.Context, id string) (journal.Journal, error) {
	select {
	case <-s.gate:
		return s.Store.Open(ctx, id)
	case <-ctx.Done():
		<-s.gate
		return nil, ctx.Err()
	}
}

// Whoever comes while an opening is being given up waits for that, and opens anew.
func TestCallerWhileOpeningIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lingeringStore{journal.NewMemoryStore(journal.MemoryOptions{}), make(chan struct{})}
		id := enginetest.New(t, enginetest.Options{Store: store}).Begin()
		time.Sleep(time.Minute) // it is released
		e := enginetest.New(t, enginetest.Options{Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		one := resume(ctx, e, id)
		cancel()
		if err := <-one; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
		two := resume(t.Context(), e, id)
		close(store.gate)
		if err := <-two; err != nil {
			t.Errorf("the one that came: %v", err)
		}
	})
}

func TestShutdownWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, id := locked(t)
		opened := resume(t.Context(), e, id)
		began := time.Now()
		if err := e.Shutdown(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("shutdown: %v after %v; it must not wait for the lock", err, time.Since(began))
		}
		if err := <-opened; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("resume: %v", err)
		}
	})
}

// Shutdown waits for its context and no longer, also if the disk stands still;
// what it leaves is closed when the disk goes on.
func TestShutdownIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		store := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Duration(delay.Load()) }})
		e := enginetest.New(t, enginetest.Options{Store: store})
		delay.Store(int64(time.Minute))
		created := make(chan error, 1)
		go func() {
			_, err := e.Create(t.Context(), p.Settings{})
			created <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("shutdown: %v after %v", err, time.Since(began))
		}
		if err := <-created; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("create: %v", err)
		}
		if list, _ := store.List(t.Context()); len(list) != 0 {
			t.Errorf("%d conversations left", len(list))
		}
	})
}

var errFull = errors.New("no space left")

// fullStore is a store whose disk is full while the returned flag is set.
func fullStore() (*journal.MemoryStore, *atomic.Bool) {
	var full atomic.Bool
	return journal.NewMemoryStore(journal.MemoryOptions{SyncError: func() error {
		if full.Load() {
			return errFull
		}
		return nil
	}}), &full
}

func TestFailedCreateAndForkLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, full := fullStore()
		e := enginetest.New(t, enginetest.Options{Store: store})
		id := e.Begin()
		talk(e, id, e.Watch(id, 0), "one")
		full.Store(true)
		if _, err := e.Create(t.Context(), p.Settings{}); !errors.Is(err, errFull) {
			t.Errorf("create: %v", err)
		}
		if _, err := e.Fork(t.Context(), id, 0); !errors.Is(err, errFull) {
			t.Errorf("fork: %v", err)
		}
		full.Store(false)
		if list, _ := store.List(t.Context()); len(list) != 1 {
			t.Errorf("%d conversations, want the first alone", len(list))
		}
	})
}

// Whoever leaves while a conversation is being created has none.
func TestAbandonedCreateLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
		e := enginetest.New(t, enginetest.Options{Store: store})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := e.Create(ctx, p.Settings{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("create: %v", err)
		}
		time.Sleep(time.Minute)
		if list, _ := store.List(t.Context()); len(list) != 0 {
			t.Errorf("%d conversations left", len(list))
		}
	})
}

// A Release that gave up does not make the engine forget the conversation.
func TestShutdownAfterAReleaseThatGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		r.Deaf()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Release(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("release: %v", err)
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		view, _ := e.Store.View(t.Context(), string(id))
		if tail, _ := view.Tail(t.Context(), 1); tail[0].Kind != "turn_ended" {
			t.Errorf("shutdown returned, and the last record is %s", tail[0].Kind)
		}
		r.End()
	})
}

// An op that comes while its conversation is being released waits, and opens it again.
func TestOpWhileReleasing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Deaf()
		released := make(chan error, 1)
		go func() { released <- e.Release(t.Context(), id) }()
		synctest.Wait()
		said := make(chan struct{})
		go func() { defer close(said); e.Say(id, "two") }()
		synctest.Wait()
		r.End()
		if err := <-released; err != nil {
			t.Error(err)
		}
		e.Request().Answer("2")
		<-said
		e.Watch(id, 0).Expect("turn_ended interrupted", "user_message two", "turn_ended completed")
	})
}

// What comes while a conversation is being deleted finds nothing.
func TestOpWhileDeleting(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Deaf()
		deleted := make(chan error, 1)
		go func() { deleted <- e.Delete(t.Context(), id) }()
		synctest.Wait()
		asked := resume(t.Context(), e, id)
		r.End()
		if err := <-deleted; err != nil {
			t.Errorf("delete: %v", err)
		}
		if err := <-asked; err == nil {
			if _, err := e.Resume(t.Context(), id); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("resume: %v", err)
			}
		} else if !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("resume: %v", err)
		}
	})
}

// A context that has ended already records nothing.
func TestCancelledContextRecordsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // where two ways are open, either may be taken
			_, created := e.Create(ctx, p.Settings{})
			_, forked := e.Fork(ctx, id, 0)
			_, submitted := e.Submit(ctx, id, p.Rename{Title: "x"})
			for what, err := range map[string]error{
				"create": created, "fork": forked, "submit": submitted, "archive": e.Archive(ctx, id), "delete": e.Delete(ctx, id),
			} {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		w.Nothing()
		if list, _ := e.Store.List(t.Context()); len(list) != 1 || list[0].Archived {
			t.Errorf("conversations %+v", list)
		}
	})
}

// An ephemeral conversation can be released and resumed like any other.
func TestReleaseOfAnEphemeralConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id, err := e.Create(t.Context(), p.Settings{Ephemeral: true})
		if err != nil {
			t.Fatal(err)
		}
		talk(e, id, e.Watch(id, 0), "one")
		if err := e.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		fork, err := e.Fork(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []p.ConversationID{id, fork} {
			if snap, err := e.Resume(t.Context(), id); err != nil || snap.Turn != 1 {
				t.Errorf("%+v, %v", snap, err)
			}
			if err := e.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
			if _, err := e.Resume(t.Context(), id); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("resume: %v", err)
			}
		}
		if list, _ := e.Store.List(t.Context()); len(list) != 0 {
			t.Errorf("%d conversations in the store", len(list))
		}
	})
}
