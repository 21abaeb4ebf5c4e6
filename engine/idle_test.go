package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// stores are those that two processes can share.
func stores(t *testing.T) map[string]journal.Store {
	return map[string]journal.Store{
		"memory": journal.NewMemoryStore(journal.MemoryOptions{}),
		"file":   file.New(t.TempDir(), file.Options{Poll: true}),
	}
}

// both runs a test with two engines that share a store.
func both(t *testing.T, f func(t *testing.T, ours, theirs *enginetest.Engine)) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f(t, enginetest.New(t, enginetest.Options{Store: store}), enginetest.New(t, enginetest.Options{Store: store}))
			})
		})
	}
}

func wantOpen(t *testing.T, e *enginetest.Engine, want int) {
	t.Helper()
	synctest.Wait()
	if open, _ := e.Counts(); open != want {
		t.Errorf("%d conversations are open, want %d", open, want)
	}
}

func TestIdleConversationIsReleased(t *testing.T) {
	both(t, func(t *testing.T, ours, theirs *enginetest.Engine) {
		id := ours.Begin()
		time.Sleep(999 * time.Millisecond)
		wantOpen(t, ours, 1)
		ours.Must(id, p.Rename{Title: "x"}) // the clock starts anew
		time.Sleep(999 * time.Millisecond)
		wantOpen(t, ours, 1)
		time.Sleep(2 * time.Millisecond)
		wantOpen(t, ours, 0)
		for range ours.Subscribe(t.Context(), id, 0) {
			break // a follower that leaves
		}
		time.Sleep(2 * time.Second)
		wantOpen(t, ours, 0)
		for i, e := range []*enginetest.Engine{theirs, ours, theirs} {
			e.Say(id, "go")
			e.Request().Answer("yes")
			time.Sleep(2 * time.Second)
			if snap, err := e.Resume(t.Context(), id); err != nil || snap.Turn != p.TurnID(i+1) || snap.Title != "x" {
				t.Errorf("%+v, %v", snap, err)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// Whoever lists what is open, again and again, keeps nothing from being released.
func TestListingKeepsNothingOpen(t *testing.T) {
	both(t, func(t *testing.T, ours, _ *enginetest.Engine) {
		ours.Begin()
		for range 9 {
			time.Sleep(100 * time.Millisecond)
			if open := ours.Live(t.Context()); len(open) != 1 {
				t.Errorf("open: %+v", open)
			}
		}
		time.Sleep(101 * time.Millisecond)
		wantOpen(t, ours, 0)
	})
}

// While something goes on, a conversation is kept.
func TestBusyConversationIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		time.Sleep(time.Hour) // a model that thinks
		wantOpen(t, e, 1)
		r.Call("c1", "work", "{}")
		r.End()
		run := e.Run()
		time.Sleep(time.Hour) // a call that runs
		wantOpen(t, e, 1)
		job := e.Job()
		if err := run.Keep(job, `{"n":1}`); err != nil {
			t.Fatal(err)
		}
		run.Finish("started")
		e.Request().Answer("done")
		time.Sleep(time.Hour) // a background command
		wantOpen(t, e, 1)
		job.Exit(0)
		time.Sleep(59 * time.Second) // the clock began when nothing went on any more
		wantOpen(t, e, 1)
		e.Say(id, "again")
		r = e.Request()
		time.Sleep(time.Hour)
		r.Answer("done")
		time.Sleep(59 * time.Second)
		wantOpen(t, e, 1)
		time.Sleep(2 * time.Minute) // Watch follows
		wantOpen(t, e, 0)
	})
}

// Whoever follows does not notice that the conversation is released and opened again.
func TestFollowerOfAReleasedConversation(t *testing.T) {
	both(t, func(t *testing.T, ours, _ *enginetest.Engine) {
		id := ours.Begin()
		w := ours.WatchAll(id, 0)
		w.ExpectExactly("conversation_started")
		time.Sleep(59 * time.Second)
		wantOpen(t, ours, 1)
		time.Sleep(2 * time.Second)
		wantOpen(t, ours, 0)
		for range 2 {
			ours.Say(id, "go")
			r := ours.Request()
			r.Delta("ye")
			synctest.Wait() // it is given before the rest
			r.Answer("yes")
			w.Expect("delta 1.1.0 0 ye")
			w.ExpectExactly("delta 1.1.0 2 s", "assistant_message yes", "model_ended", "turn_ended completed")
			w.Nothing()
			time.Sleep(time.Hour)
			wantOpen(t, ours, 0)
			id, w = again(t, ours, id)
		}
	})
}

// again forks a conversation back to its beginning and follows the fork.
func again(t *testing.T, e *enginetest.Engine, id p.ConversationID) (p.ConversationID, *enginetest.Watch) {
	t.Helper()
	fork, err := e.Fork(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	return fork, e.WatchAll(fork, 0)
}

// Whoever follows a released conversation also sees what another process does.
func TestFollowerSeesAnotherProcess(t *testing.T) {
	both(t, func(t *testing.T, ours, theirs *enginetest.Engine) {
		id := ours.Begin()
		w := ours.WatchAll(id, 0)
		w.ExpectExactly("conversation_started")
		time.Sleep(2 * time.Minute)
		theirs.Say(id, "go")
		r := theirs.Request()
		r.Delta("y")
		w.ExpectExactly("turn_started", "user_message go", "model_requested 1", "delta 1.1.0 0 y")
		r.Delta("e")
		w.ExpectExactly("delta 1.1.0 1 e")
		w.Nothing()
		r.Answer("yes")
		w.ExpectExactly("delta 1.1.0 2 s", "assistant_message yes", "model_ended", "turn_ended completed")
		time.Sleep(time.Hour)
		ours.Say(id, "and now")
		ours.Request().Answer("no")
		w.ExpectExactly("turn_started", "user_message and now", "model_requested 1", "assistant_message no", "model_ended", "turn_ended completed")
		w.Nothing()
	})
}

// reportingStore reports changes when the test says so, and counts how often it is looked at.
type reportingStore struct {
	journal.Store
	looks   atomic.Int64
	changed chan struct{}
}

func (s *reportingStore) Watch(context.Context, string) (<-chan struct{}, func()) {
	return s.changed, func() {}
}

func (s *reportingStore) Stat(ctx context.Context, id string) (journal.Info, error) {
	s.looks.Add(1)
	return s.Store.Stat(ctx, id)
}

// Whoever follows a released conversation does nothing, for hours, until the store reports a change.
func TestFollowerDoesNothingWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := file.New(t.TempDir(), file.Options{Poll: true})
		reporting := &reportingStore{Store: files, changed: make(chan struct{})}
		ours, theirs := enginetest.New(t, enginetest.Options{Store: reporting}), enginetest.New(t, enginetest.Options{Store: files})
		id := ours.Begin()
		w := ours.WatchAll(id, 0)
		w.ExpectExactly("conversation_started")
		time.Sleep(2 * time.Minute)
		wantOpen(t, ours, 0)
		for range 2 {
			before := reporting.looks.Load()
			time.Sleep(time.Hour)
			if n := reporting.looks.Load() - before; n != 0 {
				t.Errorf("the store was looked at %d times", n)
			}
			theirs.Must(id, p.Rename{Title: "x"})
			w.Nothing()
			reporting.changed <- struct{}{}
			w.ExpectExactly("renamed")
			time.Sleep(time.Minute) // the file is closed meanwhile
		}
	})
}

// A turn that only waits for an approval is released, and anybody can answer.
func TestReleaseOfATurnThatWaits(t *testing.T) {
	both(t, func(t *testing.T, ours, theirs *enginetest.Engine) {
		id := ours.Begin()
		w := ours.Watch(id, 0)
		ours.Say(id, "go")
		r := ours.Request()
		r.Call("c1", "work", "{}")
		r.End()
		ours.Run().Ask("rm", "x")
		w.Expect("approval_requested 1.1.0")
		time.Sleep(2 * time.Minute)
		wantOpen(t, ours, 0)
		theirs.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved})
		theirs.Run().Ask("rm", "y")
		w.ExpectExactly("approval_resolved 1.1.0 approved", "call_started 1.1.0 approved", "approval_requested 1.1.0")
		time.Sleep(2 * time.Minute)
		ours.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.Approved})
		ours.Run().Finish("done")
		ours.Request().Answer("done")
		w.Expect("turn_ended completed")
		w.Nothing()
	})
}

// A process that ends leaves conversations to others in which nothing runs, also if it keeps turns that wait: those wait on elsewhere.
func TestReleaseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		keeps := func(c *engine.Config) { c.KeepWaiting = true }
		ours := enginetest.New(t, enginetest.Options{Store: store, Config: keeps})
		theirs := enginetest.New(t, enginetest.Options{Store: store})
		id := ours.Begin()
		ours.Say(id, "go")
		r := ours.Request()
		if err := ours.Local.ReleaseWaiting(t.Context(), id); !errors.Is(err, conversation.ErrRuns) {
			t.Errorf("while the model answers: %v", err)
		}
		r.Call("c1", "work", "{}")
		r.End()
		run := ours.Run()
		if err := ours.Local.ReleaseWaiting(t.Context(), id); !errors.Is(err, conversation.ErrRuns) {
			t.Errorf("while a call runs: %v", err)
		}
		run.Ask("rm", "x")
		ours.Watch(id, 0).Expect("approval_requested 1.1.0")
		time.Sleep(time.Hour)
		wantOpen(t, ours, 1)
		if err := ours.Local.ReleaseWaiting(t.Context(), id); err != nil {
			t.Errorf("while it waits: %v", err)
		}
		snap, err := theirs.Resume(t.Context(), id)
		if err != nil || !snap.Active || !snap.Waiting {
			t.Errorf("elsewhere: %+v, %v", snap, err)
		}
		if err := ours.Local.ReleaseWaiting(t.Context(), id); err != nil {
			t.Errorf("what is not open: %v", err)
		}
	})
}

// What was approved for the conversation holds after it was released, and a long
// turn that waits is opened from a checkpoint.
func TestWhatOutlivesARelease(t *testing.T) {
	both(t, func(t *testing.T, ours, theirs *enginetest.Engine) {
		id := ours.Begin()
		ours.Say(id, strings.Repeat("long ", 100_000))
		r := ours.Request()
		r.Call("c1", "work", "{}")
		r.Call("c2", "work", "{}")
		r.End()
		ours.Run().Ask("make")
		ours.Watch(id, 0).Expect("approval_requested 1.1.0")
		ours.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1}, Decision: p.ApprovedForSession})
		ours.Run().Finish("made")
		ours.Run().Ask("rm", "x")
		time.Sleep(2 * time.Minute)
		wantOpen(t, ours, 0)

		j, err := ours.Store.Open(t.Context(), string(id))
		if err != nil {
			t.Fatal(err)
		}
		if found := j.Recovery(); found.CheckpointSeq != found.Last {
			t.Errorf("the checkpoint is at %d of %d", found.CheckpointSeq, found.Last)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}

		theirs.Must(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1, Index: 1}, Decision: p.Approved})
		run := theirs.Run()
		if !run.Call.Grants.Has([]string{"make"}, "") || run.Call.Grants.Has([]string{"rm", "x"}, "") {
			t.Errorf("granted: %+v", run.Call.Grants)
		}
		run.Finish("removed")
		theirs.Request().Answer("done")
	})
}

// Attach says where the past ends also if the conversation is released before
// the client has taken all of it.
func TestAttachToAConversationThatIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one")
		var live, renamed atomic.Int64 // when, if at all
		lines := []string{}
		for ev, err := range e.Attach(t.Context(), id, 0, func() { live.Store(time.Now().UnixNano()) }) {
			if err != nil {
				t.Fatal(err)
			}
			if lines = append(lines, enginetest.Line(ev)); len(lines) == 8 {
				break
			}
			time.Sleep(10 * time.Minute) // a slow client
			if len(lines) == 7 {
				wantOpen(t, e, 0)
				time.AfterFunc(time.Minute, func() {
					renamed.Store(time.Now().UnixNano())
					_, _ = e.Submit(t.Context(), id, p.Rename{Title: "x"})
				})
			}
		}
		if live.Load() == 0 || live.Load() >= renamed.Load() || lines[7] != "renamed" {
			t.Errorf("live at %d, renamed at %d: %q", live.Load(), renamed.Load(), lines)
		}
	})
}

// Followers of a released conversation end when it is removed, and when the engine ends.
func TestFollowersOfAReleasedConversationEnd(t *testing.T) {
	for name, end := range map[string]func(*enginetest.Engine, p.ConversationID) error{
		"archive":  func(e *enginetest.Engine, id p.ConversationID) error { return e.Archive(context.Background(), id) },
		"delete":   func(e *enginetest.Engine, id p.ConversationID) error { return e.Delete(context.Background(), id) },
		"shutdown": func(e *enginetest.Engine, _ p.ConversationID) error { return e.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
				time.Sleep(2 * time.Minute)
				wantOpen(t, e, 0)
				if err := end(e, id); err != nil {
					t.Error(err)
				}
				if err := w.Ended(); !errors.Is(err, engine.ErrClosed) {
					t.Errorf("the follower ended with %v", err)
				}
				if _, watched := e.Counts(); watched != 0 {
					t.Errorf("%d are watched", watched)
				}
			})
		})
	}
}

// A limitedStore has descriptors for so many open conversations.
type limitedStore struct {
	journal.Store
	left  *atomic.Int64
	short *atomic.Int64 // how often there was none left
}

func newLimitedStore(t *testing.T, limit int64) limitedStore {
	s := limitedStore{file.New(t.TempDir(), file.Options{Poll: true}), new(atomic.Int64), new(atomic.Int64)}
	s.left.Store(limit)
	return s
}

type limitedJournal struct {
	journal.Journal
	left *atomic.Int64
}

func (s limitedStore) open(j journal.Journal, err error) (journal.Journal, error) {
	if err != nil {
		s.left.Add(1)
		return nil, err
	}
	return limitedJournal{j, s.left}, nil
}

func (s limitedStore) take() error {
	if s.left.Add(-1) < 0 {
		s.left.Add(1)
		s.short.Add(1)
		return fmt.Errorf("open: %w", syscall.EMFILE)
	}
	return nil
}

func (s limitedStore) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	if err := s.take(); err != nil {
		return nil, err
	}
	return s.open(s.Store.Create(ctx, id, at))
}

func (s limitedStore) Open(ctx context.Context, id string) (journal.Journal, error) {
	if err := s.take(); err != nil {
		return nil, err
	}
	return s.open(s.Store.Open(ctx, id))
}

func (s limitedStore) View(ctx context.Context, id string) (journal.View, error) {
	if s.left.Load() <= 0 {
		s.short.Add(1)
		return nil, fmt.Errorf("view: %w", syscall.EMFILE)
	}
	return s.Store.View(ctx, id)
}

func (j limitedJournal) Close() error {
	defer j.left.Add(1)
	return j.Journal.Close()
}

// When descriptors run short, idle conversations are released at once, those that
// run a turn are not, and those that are followed go on being followed.
func TestShortOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newLimitedStore(t, 10)
		e := enginetest.New(t, enginetest.Options{Store: store, IdleAfter: -1, IdleFollowed: -1})
		busy := e.Begin()
		e.Say(busy, "think")
		r := e.Request()
		var ids []p.ConversationID
		var watches []*enginetest.Watch
		for range 50 {
			id := e.Begin()
			ids = append(ids, id)
			watches = append(watches, e.Watch(id, 0))
			e.Say(id, "hi")
			e.Request().Answer("hello")
		}
		for i, id := range ids {
			e.Say(id, "again")
			e.Request().Answer("hello again")
			watches[i].Expect("turn_ended completed", "turn_ended completed")
			watches[i].Nothing()
			if _, err := e.Fork(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		page, err := e.List(t.Context(), engine.ListOptions{Limit: 200})
		if err != nil || len(page.Items) != 101 {
			t.Errorf("%d conversations, %v", len(page.Items), err)
		}
		if store.short.Load() == 0 {
			t.Error("descriptors never ran short")
		}
		r.Answer("thought")
		e.Watch(busy, 0).Expect("assistant_message thought", "turn_ended completed")
	})
}

// If all that is open is busy, the error says why no more can be opened.
func TestOutOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{Store: newLimitedStore(t, 1)})
		id := e.Begin()
		e.Say(id, "think")
		e.Request()
		if _, err := e.Create(t.Context(), p.Settings{}); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("create: %v", err)
		}
	})
}

// Nothing of a conversation that was released is left in the engine.
func TestReleasedConversationsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			id := e.Begin()
			go func() {
				for range e.Subscribe(ctx, id, 0) {
				}
			}()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		open, watched := e.Counts()
		if d := cmp.Diff([]int{0, 100}, []int{open, watched}); d != "" {
			t.Errorf("open and watched (-want +got):\n%s", d)
		}
		cancel()
		synctest.Wait()
		open, watched = e.Counts()
		if d := cmp.Diff([]int{0, 0}, []int{open, watched}); d != "" {
			t.Errorf("open and watched (-want +got):\n%s", d)
		}
	})
}
