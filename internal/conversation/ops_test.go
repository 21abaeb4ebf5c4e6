package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A batchStore remembers what was appended together.
type batchStore struct {
	*journal.MemoryStore
	mu      sync.Mutex
	batches [][]journal.Entry
}

func (s *batchStore) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	j, err := s.MemoryStore.Create(ctx, id, at)
	return batchJournal{j, s}, err
}

func (s *batchStore) Open(ctx context.Context, id string) (journal.Journal, error) {
	j, err := s.MemoryStore.Open(ctx, id)
	return batchJournal{j, s}, err
}

type batchJournal struct {
	journal.Journal
	s *batchStore
}

func (j batchJournal) Append(entries ...journal.Entry) uint64 {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.s.batches = append(j.s.batches, slices.Clone(entries))
	return j.Journal.Append(entries...)
}

func (s *batchStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches)
}

// of returns the batches that carry the name of an op.
func (s *batchStore) of(t *testing.T, op string) [][]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var named [][]string
	for _, batch := range s.batches {
		var kinds []string
		carries := false
		for _, e := range batch {
			body, err := p.DecodeBody(e.Kind, e.Body)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
			if b, ok := body.(p.Caused); ok && b.CausedBy().Op == op {
				carries = true
			}
		}
		if carries {
			named = append(named, kinds)
		}
	}
	return named
}

// opStates are the states in which ops are submitted. Before each there was a turn that completed.
var opStates = map[string]func(t *testing.T, e *enginetest.Engine, id p.ConversationID){
	"idle": func(*testing.T, *enginetest.Engine, p.ConversationID) {},
	"streaming": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Say(id, "go")
		e.Request().Delta("wor")
	},
	"running a call": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) { runCall(e, id) },
	"waiting for an approval": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		runCall(e, id).Ask("make")
	},
	"waiting for an answer": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		run := runCall(e, id)
		go run.Call.Host.(tool.Elicitor).Elicit(run.Ctx, p.ElicitationRequested{Server: "s", Message: "who?"}) // ends with the call
	},
	"waiting to retry": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Say(id, "go")
		e.Request().Fail(enginetest.Broken())
	},
	"held": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Say(id, "go")
		e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "limit"})
	},
	"stopping": func(t *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Say(id, "go")
		r := e.Request()
		r.Deaf()
		t.Cleanup(func() { r.Fail(nil) })
		e.Must(id, p.Interrupt{})
	},
	"compacting": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Must(id, p.Compact{})
		e.Request()
	},
	"running the user's command": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Must(id, p.UserShell{Command: "ls"})
		e.Run()
	},
	"with a waiting message": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Say(id, "go")
		e.Request()
		e.Say(id, "then", p.Queue)
	},
	"with a background command": func(t *testing.T, e *enginetest.Engine, id p.ConversationID) {
		run := runCall(e, id)
		if err := run.Keep(e.Job(), `"h"`); err != nil {
			t.Fatal(err)
		}
		run.Finish("kept")
		e.Request().Answer("done")
	},
	"undoing": func(_ *testing.T, e *enginetest.Engine, id p.ConversationID) {
		e.Must(id, p.Undo{Started: &p.PatchStarted{Patch: "u", Undoes: 1, Record: json.RawMessage(`"r"`)}})
	},
}

func runCall(e *enginetest.Engine, id p.ConversationID) *enginetest.Run {
	e.Say(id, "go")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	return e.Run()
}

var other = "other"

// opsOf are the ops that are submitted.
var opsOf = map[string]p.Op{
	"message":                     p.UserTurn{Content: p.Text("hello")},
	"message with settings":       p.UserTurn{Content: p.Text("hello"), Overrides: &p.Overrides{Model: &other}},
	"empty message":               p.UserTurn{Overrides: &p.Overrides{Model: &other}},
	"steer":                       p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Steer},
	"steer with settings":         p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Steer, Overrides: &p.Overrides{Model: &other}},
	"steer turn 2":                p.UserTurn{Content: p.Text("hello"), Into: 2},
	"queue with settings":         p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Queue, Overrides: &p.Overrides{Model: &other}},
	"replace":                     p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Replace},
	"interrupt":                   p.Interrupt{},
	"interrupt turn 1":            p.Interrupt{Turn: 1},
	"approve":                     p.Approve{Call: p.CallID{Turn: 2, Response: 1}, Decision: p.ApprovedForSession},
	"deny":                        p.Approve{Call: p.CallID{Turn: 2, Response: 1}, Decision: p.Denied},
	"abort":                       p.Approve{Call: p.CallID{Turn: 2, Response: 1}, Decision: p.Abort},
	"unknown decision":            p.Approve{Call: p.CallID{Turn: 2, Response: 1}, Decision: "maybe"},
	"answer":                      p.AnswerElicitation{Call: p.CallID{Turn: 2, Response: 1}, Number: 1, Action: p.ElicitationDecline},
	"configure":                   p.Configure{Overrides: p.Overrides{Model: &other}},
	"try now":                     p.TryNow{},
	"try now with settings":       p.TryNow{Overrides: &p.Overrides{Model: &other}},
	"compact":                     p.Compact{},
	"rename":                      p.Rename{Title: "title"},
	"revert":                      p.Revert{Before: 1},
	"revert to the future":        p.Revert{Before: 9},
	"undo: start":                 p.Undo{Started: &p.PatchStarted{Patch: "v", Undoes: 1, Record: json.RawMessage(`"r"`)}},
	"undo: commit":                p.Undo{Committed: &p.PatchCommitted{Patch: "u"}},
	"undo: settle":                p.Undo{Settled: &p.PatchSettled{Patch: "u"}},
	"undo: done":                  p.Undo{Done: &p.Undone{Of: 1, Patch: "u"}},
	"undo: no step":               p.Undo{},
	"undo: two steps":             p.Undo{Settled: &p.PatchSettled{Patch: "u"}, Done: &p.Undone{Of: 1, Patch: "u"}},
	"run a command":               p.UserShell{Command: "ls"},
	"run an empty command":        p.UserShell{},
	"kill background command":     p.KillBackground{ID: 1},
	"edit a waiting message":      p.EditInput{Input: 3, Content: p.Text("edited")},
	"empty a waiting message":     p.EditInput{Input: 3},
	"take back waiting message":   p.DeleteInput{Input: 3},
	"take back delivered message": p.DeleteInput{Input: 1},
}

// What is accepted in every state, in every one without a turn, and in every one with a turn.
var (
	acceptedAlways = []string{"message", "message with settings", "queue with settings", "steer", "replace", "configure", "rename"}
	acceptedIdle   = []string{"compact", "revert", "run a command", "undo: start", "undo: settle", "undo: done"}
	acceptedBusy   = []string{"interrupt"}
)

// acceptedIn is what is accepted in each state beside that.
var acceptedIn = map[string][]string{
	"streaming":                 {"steer turn 2"},
	"running a call":            {"steer turn 2"},
	"waiting for an approval":   {"steer turn 2", "approve", "deny", "abort"},
	"waiting for an answer":     {"steer turn 2", "answer"},
	"waiting to retry":          {"steer turn 2"},
	"held":                      {"steer turn 2", "try now", "try now with settings"},
	"with a waiting message":    {"steer turn 2", "edit a waiting message", "take back waiting message"},
	"with a background command": {"kill background command"},
	"undoing":                   {"undo: commit"},
}

// An op is recorded as one batch under its name and done once, or it is refused and changes nothing.
func TestOpsInEveryState(t *testing.T) {
	for state, enter := range opStates {
		want := slices.Concat(acceptedAlways, acceptedIn[state])
		if idle := []string{"idle", "with a background command", "undoing"}; slices.Contains(idle, state) {
			want = append(want, acceptedIdle...)
		} else {
			want = append(want, acceptedBusy...)
		}
		for name, op := range opsOf {
			t.Run(state+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := submitTwice(t, enter, op); got != slices.Contains(want, name) {
						t.Errorf("accepted: %v", got)
					}
				})
			})
		}
	}
}

// submitTwice submits an op in a state, again under the same name, and again to the next owner after a
// crash. It reports whether it was accepted.
func submitTwice(t *testing.T, enter func(*testing.T, *enginetest.Engine, p.ConversationID), op p.Op) bool {
	store := &batchStore{MemoryStore: journal.NewMemoryStore(journal.MemoryOptions{})}
	e := enginetest.New(t, enginetest.Options{Store: store, IdleAfter: -1})
	id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", Model: "puppet", OnLimit: p.OnLimitHold})
	if err != nil {
		t.Fatal(err)
	}
	e.Say(id, "first")
	e.Request().Answer("1")
	synctest.Wait()
	enter(t, e, id)
	synctest.Wait()
	before, batches := snapshot(t, e.Local, id), store.count()
	ctx := engine.WithClient(t.Context(), engine.Client{Name: "test", Op: "op-1"})

	first, refused := e.Submit(ctx, id, op)
	if refused != nil {
		after := snapshot(t, e.Local, id)
		if d := cmp.Diff(before, after); d != "" || store.count() != batches {
			t.Errorf("refused with %v, and %d batches recorded (-before +after):\n%s", refused, store.count()-batches, d)
		}
		if _, again := e.Submit(ctx, id, op); again == nil || again.Error() != refused.Error() {
			t.Errorf("refused with %v, then %v", refused, again)
		}
		return false
	}
	if store.count() == batches {
		if _, interrupt := op.(p.Interrupt); !interrupt || !before.Active {
			t.Errorf("accepted, and nothing is recorded")
		}
		return true // the turn is stopping already
	}
	if n := len(store.of(t, "op-1")); n != 1 {
		t.Errorf("%d batches carry the name of the op, want one: %q", n, store.of(t, "op-1"))
	}
	second, err := e.Submit(ctx, id, op)
	if d := cmp.Diff(first, second); d != "" || err != nil {
		t.Errorf("submitted again: %v (-first +second):\n%s", err, d)
	}

	synctest.Wait()
	store.Crash(string(id), journal.CrashKill, rand.New(rand.NewPCG(1, 1)))
	e.Kill()
	next := enginetest.New(t, enginetest.Options{Store: store, IdleAfter: -1})
	third, err := next.Submit(ctx, id, op)
	if d := cmp.Diff(first, third); d != "" || err != nil {
		t.Errorf("submitted to the next owner: %v (-first +third):\n%s", err, d)
	}
	if n := len(store.of(t, "op-1")); n != 1 {
		t.Errorf("in the end %d batches carry the name of the op: %q", n, store.of(t, "op-1"))
	}
	return true
}

func snapshot(t *testing.T, e *engine.Local, id p.ConversationID) engine.Snapshot {
	t.Helper()
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// Settings that are not allowed are refused, whichever op brings them.
func TestSettingsThatAreNotAllowedAreRefused(t *testing.T) {
	refusal := errors.New("not allowed")
	for _, name := range []string{"message with settings", "queue with settings", "configure", "try now with settings"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, enginetest.Options{IdleAfter: -1, Config: func(c *engine.Config) {
					c.Allow = func(s p.Settings) error {
						if s.Model == other {
							return refusal
						}
						return nil
					}
				}})
				id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", Model: "puppet", OnLimit: p.OnLimitHold})
				if err != nil {
					t.Fatal(err)
				}
				opStates["held"](t, e, id)
				synctest.Wait()
				before := snapshot(t, e.Local, id)
				if _, err := e.Submit(t.Context(), id, opsOf[name]); !errors.Is(err, refusal) {
					t.Errorf("answered with %v", err)
				}
				if d := cmp.Diff(before, snapshot(t, e.Local, id)); d != "" {
					t.Errorf("the state (-before +after):\n%s", d)
				}
			})
		})
	}
}

// An op that was refused is accepted under the same name when it has become valid.
func TestRefusedOpIsAcceptedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		ctx := engine.WithClient(t.Context(), engine.Client{Op: "op-1"})
		steer := p.UserTurn{Content: p.Text("hello"), Into: 1}
		if _, err := e.Submit(ctx, id, steer); !errors.Is(err, engine.ErrNotSteerable) {
			t.Fatalf("steering an idle conversation: %v", err)
		}
		e.Say(id, "go")
		r := e.Request()
		got, err := e.Submit(ctx, id, steer)
		if err != nil || got.State != p.TakenSteered {
			t.Errorf("steering the turn: %+v, %v", got, err)
		}
		r.Answer("1")
		if got, want := e.Request().Inputs(), []string{"user <environment_context>", "user go", "assistant 1", "user hello"}; !slices.Equal(got, want) {
			t.Errorf("the model is sent %q, want %q", got, want)
		}
	})
}

// modelsOf makes each client bring a model of its own, and remembers whose were asked.
func modelsOf(asked *[]string) func(*engine.Config) {
	return func(c *engine.Config) {
		own := c.Model
		c.ForClient = func(brings any) (engine.TurnConfig, error) {
			return engine.TurnConfig{Model: func(p.Settings) (engine.Model, error) {
				*asked = append(*asked, brings.(string)) // by one worker after the other
				return own, nil
			}}, nil
		}
	}
}

func bringing(t *testing.T, name string) context.Context {
	return engine.WithClient(t.Context(), engine.Client{Name: name, Brings: name})
}

// A turn that waits in another process continues with what the client brings whose answer is accepted.
func TestRefusedOpBringsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		one := enginetest.New(t, enginetest.Options{Store: store})
		id := one.Begin()
		runCall(one, id).Ask("make")
		synctest.Wait()
		if err := one.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}

		var asked []string
		two := enginetest.New(t, enginetest.Options{Store: store, Config: modelsOf(&asked)})
		call := p.CallID{Turn: 1, Response: 1}
		if _, err := two.Submit(bringing(t, "first"), id, p.Approve{Call: call, Decision: "maybe"}); !errors.Is(err, engine.ErrDecision) {
			t.Fatalf("an unknown decision: %v", err)
		}
		if _, err := two.Submit(bringing(t, "second"), id, p.Approve{Call: call, Decision: p.Approved}); err != nil {
			t.Fatal(err)
		}
		two.Run().Finish("made")
		two.Request().Answer("done")
		synctest.Wait()
		if want := []string{"second"}; !slices.Equal(asked, want) {
			t.Errorf("the models of %q were asked, want %q", asked, want)
		}
	})
}

// A message that waits is run with what its client brought, also if another message comes before its
// turn has begun.
func TestWaitingMessageKeepsWhatItsClientBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		d := newSlowDisk()
		e := enginetest.New(t, enginetest.Options{Store: d, Config: modelsOf(&asked)})
		id := e.Begin()
		w := e.Watch(id, 0)
		say := func(client, text string) {
			if _, err := e.Submit(bringing(t, client), id, p.UserTurn{Content: p.Text(text), WhenBusy: p.Queue}); err != nil {
				t.Error(err)
			}
		}
		say("first", "one")
		r := e.Request()
		say("second", "two")
		r.Message("1")
		synctest.Wait()
		d.set(time.Second)
		r.End()
		time.Sleep(time.Millisecond) // the end is recorded and not durable
		go say("third", "three")
		e.Request().Answer("2")
		e.Request().Answer("3")
		w.Expect("turn_ended completed", "user_message two", "turn_ended completed", "user_message three", "turn_ended completed")
		if want := []string{"first", "second", "third"}; !slices.Equal(asked, want) {
			t.Errorf("the models of %q were asked, want %q", asked, want)
		}
	})
}

// A message that is delivered because of another client's op is not that client's.
func TestDeliveredMessageIsNotThatOfTheOp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		w := e.Watch(id, 0)
		run := runCall(e, id)
		run.Ask("make")
		synctest.Wait()
		writer := engine.WithClient(t.Context(), engine.Client{Name: "writer", Op: "op-1"})
		if _, err := e.Submit(writer, id, p.UserTurn{Content: p.Text("use ninja")}); err != nil {
			t.Fatal(err)
		}
		judge := engine.WithClient(t.Context(), engine.Client{Name: "judge", Op: "op-2"})
		deny := p.Approve{Call: run.Call.ID, Decision: p.Denied}
		first, err := e.Submit(judge, id, deny)
		if err != nil {
			t.Fatal(err)
		}
		w.Expect("user_message use ninja")
		if by := w.Last().Body.(*p.UserMessage).CausedBy(); by != (p.Cause{}) {
			t.Errorf("the message is that of %+v", by)
		}
		if again, err := e.Submit(judge, id, deny); err != nil || again != first || again.Input != 0 {
			t.Errorf("submitted again: %+v, %v, want %+v", again, err, first)
		}
		e.Request().Answer("done")
	})
}
