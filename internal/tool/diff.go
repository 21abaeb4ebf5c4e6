package tool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// Changes is what one turn changes in files. Make one for each turn and give it
// to all its tools. A nil one knows nothing.
type Changes struct {
	// Snapshots, if set, also show what commands change, in a git repository.
	Snapshots *Snapshots

	// Commands that run side by side use the rest one after the other: none of them begins before the first
	// snapshot is taken.
	slot slot

	plans  []*patch.Plan // the patches, in order
	tried  bool          // to find out what there was before
	root   string        // of the repository; empty if there is no snapshot
	tree   string        // the first snapshot
	latest string        // what was last reported
}

// before is called when something is about to write: the first time it takes a
// snapshot of what there is.
func (c *Changes) before(ctx context.Context, call Call) {
	if c == nil {
		return
	}
	defer c.slot.take()()
	if c.tried {
		return
	}
	c.tried = true
	c.takeUp(call)
	if c.Snapshots == nil {
		return
	}
	repo, tree, err := c.Snapshots.take(ctx, call.Settings.Cwd)
	switch {
	case errors.Is(err, git.ErrNotFound), ctx.Err() != nil:
	case err != nil:
		c.notice(ctx, call, "no snapshot was taken, so what commands change in this turn cannot be shown or undone: "+err.Error())
	default:
		c.root, c.tree = repo.Root, tree
		repo.Close()
	}
}

// takeUp finds out what the turn did before it was taken up here, when it had
// waited for an approval. If files have changed since, that stays unknown.
func (c *Changes) takeUp(call Call) {
	if len(c.plans) > 0 || len(call.Patches) == 0 {
		return
	}
	if back, err := TakeBack(patch.OS{}, call.Patches, nil); err == nil {
		c.plans = append(c.plans, back.Reverse())
	}
}

func (c *Changes) notice(ctx context.Context, call Call, text string) {
	_ = call.Host.Record(ctx, &protocol.Notice{Text: text, Warn: true}) // the turn is worth more than a remark about it
}

// patched adds a patch that was applied.
func (c *Changes) patched(p *patch.Plan) {
	if c != nil {
		defer c.slot.take()()
		c.plans = append(c.plans, p)
	}
}

// ran returns what the turn has changed so far if a command changed that.
func (c *Changes) ran(ctx context.Context, call Call) *protocol.TurnDiff {
	if c == nil {
		return nil
	}
	defer c.slot.take()()
	if c.root == "" {
		return nil
	}
	was := c.latest
	if d := c.sum(ctx, call); d.Diff != was {
		return d
	}
	return nil
}

// diff returns what the turn has changed so far. It is also wanted of a turn
// that is being stopped, and takes no longer than a snapshot may.
func (c *Changes) diff(ctx context.Context, call Call) *protocol.TurnDiff {
	if c == nil {
		return nil
	}
	defer c.slot.take()()
	return c.sum(ctx, call)
}

// sum is diff for who has the slot.
func (c *Changes) sum(ctx context.Context, call Call) *protocol.TurnDiff {
	ctx = context.WithoutCancel(ctx)
	sum := patch.Combine(c.plans...)
	d := &protocol.TurnDiff{}
	if c.root != "" {
		if err := c.compare(ctx, d, sum); err != nil {
			c.notice(ctx, call, "what commands changed in this turn cannot be shown: "+err.Error())
			c.root = ""
		}
	}
	d.Diff += sum.Diff(call.Settings.Cwd)
	c.latest = d.Diff
	return d
}

// compare takes another snapshot and adds the difference, and leaves in sum what
// is not in the snapshots.
func (c *Changes) compare(ctx context.Context, d *protocol.TurnDiff, sum *patch.Plan) error {
	ctx, cancel := c.Snapshots.limited(ctx)
	defer cancel()
	repo, tree, err := c.Snapshots.take(ctx, c.root)
	if err != nil {
		return err
	}
	defer repo.Close()
	if tree != c.tree {
		if d.Diff, err = repo.DiffTrees(ctx, c.tree, tree); err != nil {
			return err
		}
	}
	covered, err := covers(ctx, repo, c.tree, tree)
	if err != nil {
		return err
	}
	sum.Files = slices.DeleteFunc(sum.Files, func(f patch.File) bool { return covered(f.Path) })
	d.Diff = shorten(d.Diff)
	d.Trees = &protocol.TreeRange{Root: c.root, Before: c.tree, After: tree}
	return nil
}

// mostDiff is how much of a diff is recorded: commands can change more than
// anybody wants to read.
const mostDiff = 1 << 20

func shorten(diff string) string {
	if len(diff) <= mostDiff {
		return strings.ToValidUTF8(diff, "\uFFFD")
	}
	cut := strings.LastIndexByte(diff[:mostDiff], '\n') + 1
	return strings.ToValidUTF8(diff[:cut], "\uFFFD") + "… the rest of this diff is left out\n"
}

// A slot is used by one goroutine at a time. The zero value is free.
type slot struct {
	once sync.Once
	used chan struct{} // holds a value while it is used
}

// take waits until the slot is free, and returns what frees it again.
func (s *slot) take() (free func()) {
	s.once.Do(func() { s.used = make(chan struct{}, 1) })
	s.used <- struct{}{}
	return func() { <-s.used }
}
