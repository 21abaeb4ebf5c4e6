package randomtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// outcomes is what became of the ops of a scenario, by their names.
type outcomes struct {
	count       int
	done        map[string]p.Op  // those that were answered with a receipt
	refused     map[string]error // those that were not
	resubmitted int              // how many were submitted again after a crash, and accepted
}

// submit submits an op under a name of its own, after a crash again to the next owner, as a client does whose
// answer was lost.
func (s *scenario) submit(op p.Op) p.Receipt {
	s.ops.count++
	name := fmt.Sprint("op-", s.ops.count)
	if m, ok := op.(p.UserTurn); ok {
		m.Content = p.Text(name)
		op = m
	}
	for again := false; ; again = true {
		rc, err := s.engine.Submit(engine.WithClient(s.ctx, engine.Client{Name: "random", Op: name}), s.id, op)
		switch {
		case err == nil:
			s.ops.done[name] = op
			if again {
				s.ops.resubmitted++
			}
			if rc.Input != 0 {
				s.accepted[rc.Input] = true
			}
			return rc
		case s.fuse.isBlown():
			s.restart()
		case errors.Is(err, errDisk):
			return rc
		case again && errors.Is(err, engine.ErrClosed):
			return rc // the disk is broken as well: the next one could not open it
		default:
			s.ops.refused[name] = err
			return rc
		}
	}
}

// randomSettings are those that some messages come with.
func (s *scenario) randomSettings() *p.Overrides {
	if s.r.IntN(3) > 0 {
		return nil
	}
	model := fmt.Sprint("model-", s.r.IntN(3))
	return &p.Overrides{Model: &model}
}

// auditOps checks that each op that was answered is recorded, as one batch and once, and that nothing is recorded
// of those that were refused.
func (s *scenario) auditOps(all []p.Event) {
	batches, inputs := map[string][]int{}, map[string][]p.InputID{}
	for i, e := range all {
		if b, ok := e.Body.(*p.Configured); ok && b.CausedBy().Op == "" && (i+1 == len(all) || s.fuse.batchOf[uint64(e.Seq)+1] != s.fuse.batchOf[uint64(e.Seq)]) {
			s.t.Errorf("event %d changes settings, and belongs to nothing\n%s", e.Seq, around(all, e.Seq))
		}
		if b, ok := e.Body.(p.Caused); ok && b.CausedBy().Op != "" {
			name, batch := b.CausedBy().Op, s.fuse.batchOf[uint64(e.Seq)]
			if !slices.Contains(batches[name], batch) {
				batches[name] = append(batches[name], batch)
			}
		}
		var id p.InputID
		var content []p.Content
		switch b := e.Body.(type) {
		case *p.InputAccepted:
			id, content = b.Input, b.Content
		case *p.UserMessage:
			id, content = b.Input, b.Content
		}
		if name := p.PlainText(content); id != 0 && !slices.Contains(inputs[name], id) {
			inputs[name] = append(inputs[name], id)
		}
	}
	for name, list := range batches {
		if len(list) > 1 {
			s.t.Errorf("%s is recorded in %d batches\n%s", name, len(list), around(all, 0))
		}
		if err := s.ops.refused[name]; err != nil {
			s.t.Errorf("%s was refused (%v), and is recorded\n%s", name, err, around(all, 0))
		}
	}
	if s.weather.fails {
		return
	}
	for name, op := range s.ops.done {
		_, stop := op.(p.Interrupt) // of a turn that is stopping already: nothing is recorded
		if len(batches[name]) == 0 && !stop {
			s.t.Errorf("%s (%T) was accepted, and is not recorded\n%s", name, op, around(all, 0))
		}
		if _, message := op.(p.UserTurn); message && len(inputs[name]) != 1 {
			s.t.Errorf("the message %s was accepted, and is there %d times\n%s", name, len(inputs[name]), around(all, 0))
		}
	}
}
