package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/fleet/worktree"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A treeKeeper is a Keeper of a machine of its own, and what it warned of.
type treeKeeper struct {
	*worktree.Keeper
	t *testing.T

	mu     sync.Mutex
	warned string
}

const treeID = p.ConversationID("01a1e49c-1609-7220-8898-feaed88b1943")

func newKeeper(t *testing.T, s *server.Server, name string) *treeKeeper {
	t.Helper()
	store := nats.New(t.Context(), nats.Options{URL: s.ClientURL(), Lease: time.Minute})
	t.Cleanup(func() { store.Close() })
	k := &treeKeeper{t: t}
	k.Keeper = &worktree.Keeper{Home: t.TempDir(), Node: name, Base: t.Context(), Trees: worktree.Trees{Store: store}, Max: 20_000}
	k.Warn = func(text string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.warned += text + "\n"
	}
	return k
}

// end ends a turn here, and returns what was warned of.
func (k *treeKeeper) end(turn p.TurnID) string {
	k.Ended(p.TurnSummary{Conversation: treeID, Turn: turn, Cwd: k.Dir(treeID)})
	k.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	warned := k.warned
	k.warned = ""
	return warned
}

func (k *treeKeeper) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.Dir(treeID), name), []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// ready resumes the conversation here after a turn, and returns what was said of the work tree.
func (k *treeKeeper) ready(last p.TurnID) string {
	k.t.Helper()
	r, err := k.Ready(k.t.Context(), engine.Snapshot{ID: treeID, Turn: last, Settings: p.Settings{Cwd: "/elsewhere/" + string(treeID)}}, nil)
	if err != nil || r.Settings == nil || *r.Settings.Cwd != k.Dir(treeID) {
		k.t.Fatalf("%+v, %v", r, err)
	}
	return strings.Join(r.Notes, "\n")
}

func (k *treeKeeper) expect(what, got, want string) {
	k.t.Helper()
	if got != want && (want == "" || !strings.Contains(got, want)) {
		k.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// begun makes a work tree on a, of which turn 1 is kept, and a second machine b.
func begun(t *testing.T) (o *origin, a, b *treeKeeper) {
	t.Helper()
	s := listen(t, &server.Options{})
	o, a, b = newOrigin(t), newKeeper(t, s, "a"), newKeeper(t, s, "b")
	if _, err := a.Begin(t.Context(), treeID, git.Source{URL: o.url}); err != nil {
		t.Fatal(err)
	}
	a.write("new", "1\n")
	a.expect("the first turn", a.end(1), "")
	return o, a, b
}

// A work tree is the one that was kept last; who has lost it cannot keep any more, and loses nothing.
func TestWorkTreeHasOneKeeper(t *testing.T) {
	t.Parallel()
	o, a, b := begun(t)
	a.write("new", "of a turn that crashed\n")
	a.expect("on the same machine", a.ready(2), "")
	a.expect("its files", o.state(a.Dir(treeID)), "of a turn that crashed\n")

	b.expect("on the next machine", b.ready(2), "as it was on a after turn 1; what turn 2 changed is missing")
	again := &treeKeeper{t: t, Keeper: &worktree.Keeper{Home: b.Home, Trees: b.Trees}} // the first process ended before a turn followed
	again.expect("again", again.ready(2), "as it was on a after turn 1; what turn 2 changed is missing")
	snap := engine.Snapshot{ID: treeID, Turn: 2, Settings: p.Settings{Cwd: b.Dir(treeID)}}
	if r, err := again.Ready(t.Context(), snap, p.UserTurn{}); err != nil || !strings.Contains(fmt.Sprint(r.Op), "<work_tree>the work tree was restored in ") {
		t.Errorf("the message becomes %+v, %v", r.Op, err)
	}
	b.expect("when a turn has followed", b.ready(3), "")
	b.expect("its files", o.state(b.Dir(treeID)), "new: 1\n")
	b.write("new", "3\n")
	b.expect("the next turn", b.end(3), "")
	a.expect("who has lost it", a.end(2), "another machine has kept the work tree of this conversation since")
	a.expect("back again", a.ready(3), "as it was on b after turn 3")
	a.expect("its files", o.state(a.Dir(treeID)), "new: 3\n")
	if text, err := os.ReadFile(a.Dir(treeID) + ".old-1/new"); string(text) != "of a turn that crashed\n" {
		t.Errorf("what it had before: %q, %v", text, err)
	}
}

// What is too large is not kept, and that is said; what was kept before stays.
func TestWorkTreeTooLarge(t *testing.T) {
	t.Parallel()
	o, a, b := begun(t)
	a.write("large", strings.Repeat("x", 100_000))
	a.expect("the second", a.end(2), "what turn 2 changed has more than 20000 bytes, which is not kept")
	b.expect("elsewhere", b.ready(2), "after turn 1; what was changed later is missing: what turn 2 changed has more than 20000 bytes")
	b.expect("its files", o.state(b.Dir(treeID)), "new: 1\n")
}

// A turn that waits is not continued in another work tree; when it has been interrupted, what it had changed is there.
func TestWorkTreeOfAWaitingTurn(t *testing.T) {
	t.Parallel()
	s, o := listen(t, &server.Options{}), newOrigin(t)
	a, b := newKeeper(t, s, "a"), newKeeper(t, s, "b")
	if _, err := a.Begin(t.Context(), treeID, git.Source{URL: o.url}); err != nil {
		t.Fatal(err)
	}
	a.write("new", "1\n")
	a.Waits(p.TurnSummary{Conversation: treeID, Turn: 1, Cwd: a.Dir(treeID)})
	a.Wait()
	waiting := engine.Snapshot{ID: treeID, Turn: 1, Active: true, Waiting: true, Settings: p.Settings{Cwd: a.Dir(treeID)}}
	approve := p.Approve{Decision: p.Approved}
	if r, err := a.Ready(t.Context(), waiting, approve); err != nil || r.Notes != nil {
		t.Errorf("on its machine: %+v, %v", r, err)
	}
	if _, err := b.Ready(t.Context(), waiting, approve); !errors.As(err, new(*worktree.ElsewhereError)) {
		t.Errorf("elsewhere: %v", err)
	}
	if r, err := b.Ready(t.Context(), waiting, nil); err != nil || len(r.Notes) != 1 || r.Settings != nil {
		t.Errorf("looked at elsewhere: %+v, %v", r, err)
	}
	b.expect("interrupted", b.ready(1), "as it was on a while turn 1 waited")
	b.expect("its files", o.state(b.Dir(treeID)), "new: 1\n")

	// A repository that is gone: an error, and what is kept stays.
	if err := os.Rename(strings.TrimPrefix(o.url, "file://"), filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	c := newKeeper(t, s, "c")
	_, err := c.Ready(t.Context(), engine.Snapshot{ID: treeID, Turn: 1, Settings: waiting.Settings}, nil)
	if err == nil || !strings.Contains(err.Error(), "which is kept and can be restored later: fetch "+o.url) {
		t.Errorf("without its repository: %v", err)
	}
	a.expect("who has it", a.ready(1), "")
}
