// Package worktree gives conversations of a fleet work trees of a repository: each machine has its own, and
// what a turn has changed is kept in the store, as a git bundle, when the turn ends or waits. The
// machine that continues the conversation fetches the same commit and applies the bundle.
//
// A [Keeper] does this around the engine of a process: see Ready and TurnEnded of engine.Config.
package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/regular"
	p "github.com/fermata-agent/fermata/protocol"
)

// maxBundle is how large a bundle may be, and keepTime how long keeping may take.
const (
	maxBundle = 64 << 20
	keepTime  = 2 * time.Minute
)

// A Keeper makes and keeps the work trees of one home.
type Keeper struct {
	Home  string // fermata's: what it knows of its work trees is there
	Node  string // this machine, for people
	Trees Trees
	Warn  func(string) // what could not be kept

	Base context.Context // of what is kept
	Max  int             // how large a bundle may be; 0 is 64 MiB

	keeping sync.WaitGroup

	mu    sync.Mutex
	locks map[p.ConversationID]*sync.Mutex // a work tree is used by one at a time; guarded by mu
}

// A record says what is kept of a work tree.
type record struct {
	Version int    `json:"version"`
	URL     string `json:"url"`
	Commit  string `json:"commit"` // that it was checked out at

	git.Bundle           // what it has beyond that, if Turn is set
	Turn       p.TurnID  `json:"turn,omitempty"`    // the turn whose changes are the last in it
	Waiting    bool      `json:"waiting,omitempty"` // that turn had not ended
	Missing    string    `json:"missing,omitempty"` // why what was changed later is not in it
	Node       string    `json:"node,omitempty"`    // where it was kept
	At         time.Time `json:"at,omitzero"`
}

const recordVersion = 1

func decode(t Tree) (record, error) {
	var r record
	if err := json.Unmarshal(t.Record, &r); err != nil {
		return r, fmt.Errorf("read what is kept of the work tree: %w", err)
	}
	if r.Version != recordVersion {
		return r, fmt.Errorf("the work tree was kept by another version of fermata (version %d, this is %d)", r.Version, recordVersion)
	}
	return r, nil
}

// A marker says in the home which state of a work tree the one here continues.
type marker struct {
	Revision uint64   `json:"revision"`
	Bundle   string   `json:"bundle,omitempty"`   // of that state, noBundle if it has none; empty if an earlier version wrote the marker
	Restored string   `json:"restored,omitempty"` // what was restored, for people and the model
	After    p.TurnID `json:"after,omitempty"`    // the last turn before that: when another follows, they know
}

// noBundle is the bundle of a state that has none.
const noBundle = "none"

// markerOf is the marker of the work tree that continues what is kept.
func markerOf(t Tree) marker { return marker{Revision: t.Revision, Bundle: cmp.Or(t.Bundle, noBundle)} }

// continues reports whether a work tree with the marker is what is kept. In a store that was copied, another state may have its revision, but not its
// bundle.
func (m marker) continues(t Tree) bool {
	return m.Revision == t.Revision && (m.Bundle == "" || m.Bundle == cmp.Or(t.Bundle, noBundle))
}

// Dir is where the work tree of a conversation is on this machine. That is outside the home, where commands cannot write.
func (k *Keeper) Dir(id p.ConversationID) string {
	return filepath.Join(filepath.Clean(k.Home)+"-work", string(id))
}

// NewDir is the working directory of a conversation that has no work tree yet.
func NewDir(home string) string { return filepath.Join(filepath.Clean(home)+"-work", "new") }

// has reports whether the working directory of a conversation is a work tree, on some machine.
func has(id p.ConversationID, cwd string) bool { return filepath.Base(cwd) == string(id) }

func (k *Keeper) markerFile(id p.ConversationID) string {
	return filepath.Join(k.Home, "worktrees", string(id)+".json")
}

// marked returns the marker of the work tree here, an empty one if there is none here.
func (k *Keeper) marked(id p.ConversationID) marker {
	var m marker
	text, err := regular.ReadFile(k.markerFile(id))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return marker{}
	}
	if _, err := os.Stat(filepath.Join(k.Dir(id), ".git")); err != nil {
		return marker{}
	}
	return m
}

func (k *Keeper) mark(id p.ConversationID, m marker) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file := k.markerFile(id)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := regular.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// lock waits until no other process uses the work tree of a conversation.
func (k *Keeper) lock(id p.ConversationID) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[p.ConversationID]*sync.Mutex{}
	}
	l := k.locks[id]
	if l == nil {
		l = &sync.Mutex{}
		k.locks[id] = l
	}
	k.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// Begin makes the work tree of a conversation that is about to run its first turn.
func (k *Keeper) Begin(ctx context.Context, id p.ConversationID, from git.Source) (string, error) {
	defer k.lock(id)()
	tree, err := k.Trees.Load(ctx, string(id))
	if err == nil { // another machine has tried
		_, err := k.ensure(ctx, engine.Snapshot{ID: id}, tree)
		return k.Dir(id), err
	}
	if !errors.Is(err, ErrNoTree) {
		return "", err
	}
	made, commit, err := k.clone(ctx, id, from)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	text, err := json.Marshal(record{Version: recordVersion, URL: from.URL, Commit: commit})
	if err != nil {
		return "", err
	}
	if tree, err = k.Trees.Save(ctx, string(id), Tree{}, text, nil); err != nil {
		return "", err
	}
	return k.Dir(id), k.install(id, made, markerOf(tree))
}

// clone makes a work tree of its own, whose directory the caller removes if it is still there.
func (k *Keeper) clone(ctx context.Context, id p.ConversationID, from git.Source) (dir, commit string, err error) {
	parent := filepath.Dir(k.Dir(id))
	if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", "", err
	}
	if info, err := os.Lstat(parent); err != nil || !info.IsDir() {
		return "", "", fmt.Errorf("%s is not a directory", parent)
	}
	if dir, err = os.MkdirTemp(parent, "new-"); err != nil {
		return "", "", err
	}
	if commit, err = git.Clone(ctx, from, dir, branch(id)); err != nil {
		os.RemoveAll(dir)
	}
	return dir, commit, err
}

// branch is what the branch of a work tree is called at first.
func branch(id p.ConversationID) string { return "fermata/" + string(id) }

// install puts a work tree in its place. One that is there stays beside it.
func (k *Keeper) install(id p.ConversationID, made string, m marker) error {
	dir := k.Dir(id)
	for n := 1; ; n++ {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside := fmt.Sprintf("%s.old-%d", dir, n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(dir, aside); err != nil {
			return err
		}
	}
	if err := os.Rename(made, dir); err != nil {
		return err
	}
	return k.mark(id, m)
}

// ensure makes the work tree here the one that is kept, and returns its marker.
func (k *Keeper) ensure(ctx context.Context, s engine.Snapshot, t Tree) (marker, error) {
	if m := k.marked(s.ID); m.continues(t) {
		return m, nil
	}
	r, err := decode(t)
	if err != nil {
		return marker{}, err
	}
	made, _, err := k.clone(ctx, s.ID, git.Source{URL: r.URL, Ref: r.Commit})
	if err != nil {
		return marker{}, err
	}
	defer os.RemoveAll(made)
	if t.Bundle != "" {
		if r.Data, err = k.Trees.Bundle(ctx, t); err != nil {
			return marker{}, err
		}
		if err := git.Restore(ctx, made, r.Bundle); err != nil {
			return marker{}, err
		}
	}
	m := markerOf(t)
	if s.Turn > 0 {
		m.Restored, m.After = k.describe(r, s), s.Turn
	}
	return m, k.install(s.ID, made, m)
}
