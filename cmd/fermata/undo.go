package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

func undoCommand(s streams) *cobra.Command {
	var turn int
	var yes bool
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "put back the files that a turn changed",
		Long: "Put back the files that a turn changed. The diff is shown first. If a file has changed since, nothing is done.\n" +
			"The model is told at the next turn.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			e, id, err := find(cmd.Context(), conversation.Config{Reclaim: tool.Reclaim, Settle: tool.SettlePatch}, a[0])
			if err != nil {
				return err
			}
			defer e.Shutdown(context.WithoutCancel(cmd.Context()))
			return (&undoing{streams: s, engine: e, id: id, yes: yes}).run(cmd.Context(), p.TurnID(turn))
		},
	}
	cmd.Flags().IntVar(&turn, "turn", 0, "the turn to undo; the last one that changed files unless given")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// An undoing is one undo.
type undoing struct {
	streams
	engine *engine.Local
	id     p.ConversationID
	cwd    string
	yes    bool
}

func (u *undoing) run(ctx context.Context, turn p.TurnID) error {
	snap, err := u.engine.Resume(ctx, u.id)
	if err != nil {
		return err
	}
	for _, word := range snap.Recovered {
		u.say("%s", word)
	}
	if snap.Active {
		return &exitError{
			code: exitFailed, err: fmt.Errorf("turn %d waits for an approval", snap.Turn),
			hint: fmt.Sprintf("fermata approve %s --deny ends it", u.id),
		}
	}
	u.cwd = snap.Settings.Cwd
	log, err := readChanges(ctx, u.engine, u.id)
	if err != nil {
		return err
	}
	t, err := log.choose(turn)
	if err != nil {
		return err
	}
	plan, err := u.plan(ctx, t)
	if err != nil {
		return u.refused(t, log, err)
	}
	return u.put(ctx, t, plan)
}

// plan works out what has to be done: what is in snapshots from those, the rest
// from what the patches kept.
func (u *undoing) plan(ctx context.Context, t *turnChanges) (*patch.Plan, error) {
	if t.trees == nil {
		if t.commands > 0 {
			u.say("turn %d also ran commands; what they changed is not undone", t.turn)
		}
		return tool.TakeBack(patch.OS{}, t.kept, nil)
	}
	dir, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	b, err := snapshots(dir).TakeBack(ctx, *t.trees)
	if err != nil {
		return nil, err
	}
	rest, err := tool.TakeBack(patch.OS{}, t.kept, b.Covered)
	if err != nil {
		return nil, err
	}
	for _, path := range b.Modes {
		u.say("the mode of %s is not put back", path)
	}
	if t.commands > 0 {
		u.say("what the commands of turn %d changed outside %s, or where git ignores it, is not undone", t.turn, t.trees.Root)
	}
	return patch.Combine(b.Plan, rest), nil
}

func (u *undoing) say(format string, args ...any) {
	fmt.Fprintf(u.err, "fermata: "+format+"\n", args...)
}

// refused says why nothing is put back.
func (u *undoing) refused(t *turnChanges, log *changeLog, err error) error {
	e := &exitError{code: exitFailed, err: fmt.Errorf("turn %d was not undone: %w", t.turn, err)}
	var stale *tool.ChangedSinceError
	if errors.As(err, &stale) {
		e.hint = "save or take back what was done to them since, then try again"
		if last := log.last(); last != nil && last.turn > t.turn {
			e.hint = fmt.Sprintf("turn %d changed files later: undo that one first, if it is the reason", last.turn)
		}
	}
	return e
}

// put shows what will happen, asks, and does it.
func (u *undoing) put(ctx context.Context, t *turnChanges, plan *patch.Plan) error {
	fmt.Fprint(u.err, plan.Diff(u.cwd))
	if len(plan.Files) == 0 {
		u.say("the files are what they were before turn %d", t.turn)
		return nil
	}
	if !u.yes {
		fmt.Fprintf(u.err, "Put %d files back to before turn %d? [y/N] ", len(plan.Files), t.turn)
		answer, _ := bufio.NewReader(u.in).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return &exitError{code: exitFailed, err: errors.New("nothing was undone"), hint: "--yes does not ask"}
		}
	}
	err := tool.PutBack(ctx, patch.OS{}, plan, t.turn, func(op p.Undo) error {
		_, err := u.engine.Submit(ctx, u.id, op)
		return err
	})
	if err != nil {
		return fmt.Errorf("undo turn %d: %w", t.turn, err)
	}
	u.say("turn %d is undone", t.turn)
	return nil
}

// A changeLog is what the turns of a conversation did to files.
type changeLog struct {
	turns   []*turnChanges // in order; only those that changed files or ran commands
	started map[string]*p.PatchStarted
	byCall  map[p.CallID]*p.PatchStarted
}

type turnChanges struct {
	turn     p.TurnID
	kept     []json.RawMessage // of the patches that were applied, in order
	commands int
	trees    *p.TreeRange // if there are snapshots
	gap      bool         // somebody else may have changed files between two of them
	undone   bool
}

func newChangeLog() *changeLog {
	return &changeLog{started: map[string]*p.PatchStarted{}, byCall: map[p.CallID]*p.PatchStarted{}}
}

func readChanges(ctx context.Context, e *engine.Local, id p.ConversationID) (*changeLog, error) {
	log := newChangeLog()
	for ev, err := range e.Read(ctx, id) {
		if err != nil {
			return nil, err
		}
		log.apply(ev)
	}
	return log, nil
}

func (l *changeLog) apply(e p.Event) {
	switch b := e.Body.(type) {
	case *p.PatchStarted:
		l.started[b.Patch], l.byCall[b.Call] = b, b
	case *p.ToolOutput:
		if b.Patch != nil && b.Patch.Applied {
			l.applied(l.byCall[b.Call])
		}
	case *p.PatchSettled:
		if b.Applied {
			l.applied(l.started[b.Patch])
		}
	case *p.TurnDiff:
		l.at(e.Turn).picture(b.Trees)
	case *p.CommandStarted:
		l.at(b.Call.Turn).commands++
	case *p.Undone:
		l.at(b.Of).undone = true
	}
}

func (l *changeLog) applied(b *p.PatchStarted) {
	if b == nil || b.Undoes != 0 {
		return
	}
	t := l.at(b.Call.Turn)
	t.kept = append(t.kept, b.Back)
}

// picture takes up the latest pictures of a turn. When the turn was taken up by
// another process while it waited, there are new first ones; if they show what
// the last ones did, nothing happened between.
func (t *turnChanges) picture(now *p.TreeRange) {
	switch {
	case t.trees == nil || now == nil || now.Before == t.trees.Before:
		t.trees = now
	case now.Root == t.trees.Root && now.Before == t.trees.After:
		t.trees = &p.TreeRange{Root: now.Root, Before: t.trees.Before, After: now.After}
	default:
		t.trees, t.gap = now, true
	}
}

// changed reports whether the turn changed files, as far as that is known.
func (t *turnChanges) changed() bool {
	return len(t.kept) > 0 || t.trees != nil && t.trees.Before != t.trees.After
}

// at returns the entry of a turn, adding it if it is new.
func (l *changeLog) at(turn p.TurnID) *turnChanges {
	i := slices.IndexFunc(l.turns, func(t *turnChanges) bool { return t.turn == turn })
	if i < 0 {
		l.turns = append(l.turns, &turnChanges{turn: turn})
		i = len(l.turns) - 1
	}
	return l.turns[i]
}

// last is the last turn that changed files and was not undone, or nil.
func (l *changeLog) last() *turnChanges {
	for _, t := range slices.Backward(l.turns) {
		if t.changed() && !t.undone {
			return t
		}
	}
	return nil
}

// choose finds the turn to undo.
func (l *changeLog) choose(turn p.TurnID) (*turnChanges, error) {
	fail := func(format string, args ...any) error {
		return &exitError{code: exitFailed, err: fmt.Errorf(format, args...)}
	}
	if turn == 0 {
		last := l.last()
		if last == nil {
			return nil, fail("no turn changed files that could be put back%s", l.why())
		}
		turn = last.turn
	}
	t := l.at(turn)
	switch {
	case t.gap:
		return nil, fail("turn %d cannot be undone: files were changed while it waited for an approval", turn)
	case t.undone:
		return nil, fail("turn %d was undone before", turn)
	case !t.changed() && t.commands > 0 && t.trees == nil:
		return nil, fail("turn %d cannot be undone: it changed no files but by commands, and no snapshot was taken", turn)
	case !t.changed():
		return nil, fail("turn %d changed no files", turn)
	}
	return t, nil
}

// why says what there is that cannot be undone.
func (l *changeLog) why() string {
	if slices.ContainsFunc(l.turns, func(t *turnChanges) bool { return t.commands > 0 && !t.undone }) {
		return "; what commands changed cannot be undone without a snapshot"
	}
	return ""
}
