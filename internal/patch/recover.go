package patch

import (
	"errors"
	"fmt"
)

// Recover settles a record whose Apply did not return, because the process or
// the machine died, or returned an *IncompleteError. If the record was not
// committed, everything is rolled back. If it was, the patch is completed, unless
// it was already being rolled back; applied says which. Recover may be called
// again at any time until the outcome is recorded.
//
// A *ConflictError says that files changed since; everything else is settled.
// After any other error nothing is known and Recover must be called again.
func Recover(fsys FS, rec Record, committed bool) (applied bool, err error) {
	t := &transaction{fsys: fsys, rec: rec}
	if !committed {
		return false, t.undo(false)
	}

	found, err := t.survey()
	if err != nil {
		return false, fmt.Errorf("recover patch: %w", err)
	}
	if found.goBack {
		return false, t.undo(true)
	}
	return true, t.finish(found)
}

// findings is what Recover sees on disk.
type findings struct {
	pending   []Step // still to be done
	conflicts []Step // still to be done, but another program wrote the file
	goBack    bool   // some step can never be done
}

// survey looks at every step. A step that can never be done means that Apply
// was retreating, or undoing after a commit that it believed to have failed,
// unless another step shows that the end had been reached before: old contents
// lose their second name only then.
func (t *transaction) survey() (findings, error) {
	var f findings
	blocked, complete := false, false
	for _, s := range t.rec.Steps {
		now, err := t.digestAt(s.Path)
		if err != nil {
			return f, err
		}
		hasNew, err := t.exists(s.New)
		if err != nil {
			return f, err
		}
		hasOld, err := t.exists(s.Old)
		if err != nil {
			return f, err
		}
		licensed := hasNew || s.New == "" && hasOld
		switch {
		case now == s.After && !hasNew:
			complete = complete || s.Old != "" && !hasOld
		case licensed && (now == s.Before || now == s.After):
			f.pending = append(f.pending, s)
		case licensed:
			f.conflicts = append(f.conflicts, s)
		case now == s.Before:
			blocked = true
		}
		// Anything else was done, and then changed by another program.
	}
	f.goBack = blocked && !complete
	return f, nil
}

// finish does what is left to do.
func (t *transaction) finish(found findings) error {
	for _, s := range found.pending {
		err := t.advance(s)
		if errors.Is(err, errSettled) {
			return fmt.Errorf("recover %s: %w", s.Path, err)
		}
		if err != nil {
			return t.retreat(fmt.Errorf("recover %s: %w", s.Path, err))
		}
	}
	if err := t.sync(); err != nil {
		return fmt.Errorf("recover patch: %w", err)
	}
	conflict := &ConflictError{}
	for _, s := range found.conflicts {
		conflict.Paths = append(conflict.Paths, s.Path)
		if s.New != "" {
			_ = t.fsys.Remove(s.New)
		}
	}
	t.tidy()
	if len(conflict.Paths) > 0 {
		return conflict
	}
	return nil
}
