package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// An ElsewhereError says that a turn has not ended whose work tree is on another machine.
type ElsewhereError struct {
	Conversation p.ConversationID
	Turn         p.TurnID
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("turn %d waits in a work tree of another machine: interrupt it with fermata interrupt %s, then continue here", e.Turn, e.Conversation)
}

// Ready makes the work tree of a conversation that is resumed or is to run something, if it has one: see engine.Config.
func (k *Keeper) Ready(ctx context.Context, s engine.Snapshot, op p.Op) (engine.Readiness, error) {
	if !has(s.ID, s.Settings.Cwd) {
		return engine.Readiness{}, nil
	}
	defer k.lock(s.ID)()
	tree, err := k.Trees.Load(ctx, string(s.ID))
	if errors.Is(err, ErrNoTree) { // a directory that happens to be called so
		return engine.Readiness{}, nil
	}
	if err != nil {
		return engine.Readiness{}, err
	}
	dir := k.Dir(s.ID)
	if s.Active {
		return k.readyWhileActive(s, op, k.marked(s.ID).continues(tree) && s.Settings.Cwd == dir)
	}
	m, err := k.ensure(ctx, s, tree)
	if err != nil {
		return engine.Readiness{}, fmt.Errorf("restore the work tree of conversation %s, which is kept and can be restored later: %w", s.ID, err)
	}
	var ready engine.Readiness
	if m.Restored != "" && m.After == s.Turn {
		ready.Notes = []string{m.Restored}
		ready.Op = withNote(op, m.Restored)
	}
	if s.Settings.Cwd != dir {
		ready.Settings = &p.Overrides{Cwd: &dir}
	}
	return ready, nil
}

// Has reports whether the work tree of a conversation, as it is kept, is on this machine; also true if it has none.
func (k *Keeper) Has(ctx context.Context, id p.ConversationID) (bool, error) {
	defer k.lock(id)()
	tree, err := k.Trees.Load(ctx, string(id))
	if errors.Is(err, ErrNoTree) {
		return true, nil
	}
	return err == nil && k.marked(id).continues(tree), err
}

// readyWhileActive lets a turn go on that works here.
func (k *Keeper) readyWhileActive(s engine.Snapshot, op p.Op, here bool) (engine.Readiness, error) {
	elsewhere := &ElsewhereError{s.ID, s.Turn}
	switch {
	case here:
		return engine.Readiness{}, nil
	case op == nil:
		return engine.Readiness{Notes: []string{elsewhere.Error()}}, nil
	}
	return engine.Readiness{}, elsewhere
}

// describe says what was restored, and what was not.
func (k *Keeper) describe(r record, s engine.Snapshot) string {
	state := "at commit " + r.Commit
	switch {
	case r.Turn > 0 && r.Waiting:
		state = fmt.Sprintf("as it was on %s while turn %d waited", r.Node, r.Turn)
	case r.Turn > 0:
		state = fmt.Sprintf("as it was on %s after turn %d", r.Node, r.Turn)
	}
	note := fmt.Sprintf("the work tree was restored in %s, %s", k.Dir(s.ID), state)
	switch {
	case r.Missing != "":
		note += "; what was changed later is missing: " + r.Missing
	case r.Turn < s.Turn:
		note += fmt.Sprintf("; what turn %d changed is missing: its machine ended before it was kept", s.Turn)
	case r.Waiting:
		note += "; what the turn changed later is missing"
	}
	return note
}

// withNote adds what the model has to know to a message; nil if the op is none.
func withNote(op p.Op, note string) p.Op {
	message, ok := op.(p.UserTurn)
	if !ok {
		return nil
	}
	message.Content = slices.Concat(message.Content, p.Text("\n<work_tree>"+note+"</work_tree>"))
	return message
}
