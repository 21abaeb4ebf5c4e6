package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/secrets"
	p "github.com/fermata-agent/fermata/protocol"
)

// Ended keeps what a turn that has ended changed. It does not wait for that.
func (k *Keeper) Ended(s p.TurnSummary) {
	if has(s.Conversation, s.Cwd) {
		k.start(s.Conversation, s.Turn, false)
	}
}

// Waits keeps what a turn has changed that waits for a client. It does not wait for that.
func (k *Keeper) Waits(s p.TurnSummary) {
	if has(s.Conversation, s.Cwd) {
		k.start(s.Conversation, s.Turn, true)
	}
}

func (k *Keeper) start(id p.ConversationID, turn p.TurnID, waiting bool) {
	if k.marked(id).Revision == 0 {
		return // it has none, or it is on another machine
	}
	k.keeping.Go(func() { // ends within keepTime
		ctx, cancel := context.WithTimeoutCause(k.Base, keepTime, fmt.Errorf("it took longer than %v", keepTime))
		defer cancel()
		if err := k.keep(ctx, id, turn, waiting); err != nil {
			k.Warn(fmt.Sprintf("conversation %s: what turn %d changed is only on this machine, in %s: %v", id, turn, k.Dir(id), err))
		}
	})
}

// Wait returns when nothing is being kept any more.
func (k *Keeper) Wait() { k.keeping.Wait() }

// keep keeps the state of a work tree.
func (k *Keeper) keep(ctx context.Context, id p.ConversationID, turn p.TurnID, waiting bool) error {
	defer k.lock(id)()
	tree, err := k.Trees.Load(ctx, string(id))
	if err != nil {
		return err
	}
	if !k.marked(id).continues(tree) {
		return ErrTreeChanged
	}
	r, err := decode(tree)
	if err != nil {
		return err
	}
	bundle, err := k.bundle(ctx, id, r.Commit)
	if err != nil && !errors.Is(err, git.ErrTooMuch) {
		return err
	}
	large := err
	if large != nil {
		r.Missing = fmt.Sprintf("what turn %d changed has more than %d bytes", turn, k.max())
	} else {
		r.Bundle, r.Turn, r.Waiting, r.Missing, r.Node, r.At = bundle, turn, waiting, "", k.Node, time.Now().UTC()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if tree, err = k.Trees.Save(ctx, string(id), tree, text, bundle.Data); err != nil {
		return err
	}
	if err := k.mark(id, markerOf(tree)); err != nil {
		return err
	}
	if large != nil {
		return errors.New(r.Missing + ", which is not kept")
	}
	return nil
}

// bundle returns what a work tree has beyond a commit.
func (k *Keeper) bundle(ctx context.Context, id p.ConversationID, base string) (git.Bundle, error) {
	dir := k.Dir(id)
	repo, err := git.Open(ctx, git.Options{Dir: dir, Scratch: filepath.Join(k.Home, "tmp"), Without: secrets.Home(k.Home).Registered()})
	if err != nil {
		return git.Bundle{}, err
	}
	defer repo.Close()
	if repo.Root != dir {
		return git.Bundle{}, fmt.Errorf("%s is no work tree any more", dir)
	}
	untracked, err := repo.Untracked(ctx)
	if err != nil {
		return git.Bundle{}, err
	}
	size := int64(0)
	for _, name := range untracked {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	if size > 4*int64(k.max()) { // it would take long to find that out
		return git.Bundle{}, git.ErrTooMuch
	}
	return repo.Bundle(ctx, base, k.max())
}

func (k *Keeper) max() int { return cmp.Or(k.Max, maxBundle) }
