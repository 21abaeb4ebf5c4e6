package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// powerFS remembers which changes of names were synced. On a power cut the
// others may be lost, each for itself.
type powerFS struct {
	*hookFS
	start *Mem
	ops   []*powerOp
}

type powerOp struct {
	redo    func(*Mem) error
	dir     string
	removes string // path
	durable bool
}

// sync makes all that was done in a directory durable; with the removal of a
// directory also what was done in that.
func (p *powerFS) sync(dir string) {
	for _, o := range p.ops {
		if o.dir != dir || o.durable {
			continue
		}
		o.durable = true
		if o.removes != "" {
			p.sync(o.removes)
		}
	}
}

// note is called after each operation that succeeded.
func (p *powerFS) note(err error, op, path, to string, data string, mode fs.FileMode) error {
	if err != nil {
		return err
	}
	o := &powerOp{dir: filepath.Dir(path)}
	switch op {
	case "create":
		o.redo = func(m *Mem) error { return m.Create(path, []byte(data), mode, "") }
	case "symlink":
		o.redo = func(m *Mem) error { return m.Symlink(to, path) }
	case "link":
		o.redo = func(m *Mem) error { return m.Link(path, to) }
	case "mkdir":
		o.redo = func(m *Mem) error { return m.Mkdir(path) }
	case "rename":
		o.redo = func(m *Mem) error { return m.Rename(path, to) }
	case "remove":
		o.removes = path
		o.redo = func(m *Mem) error { return m.Remove(path) }
	case "sync":
		p.sync(path)
		return nil
	}
	p.ops = append(p.ops, o)
	return nil
}

func (p *powerFS) Create(path string, data []byte, mode fs.FileMode, like string) error {
	return p.do("create", path, "", func() error {
		return p.note(p.FS.Create(path, data, mode, like), "create", path, "", string(data), mode)
	})
}

func (p *powerFS) Symlink(target, path string) error {
	return p.do("symlink", path, "", func() error {
		return p.note(p.FS.Symlink(target, path), "symlink", path, target, "", 0)
	})
}

func (p *powerFS) Link(path, link string) error {
	return p.do("link", path, link, func() error { return p.note(p.FS.Link(path, link), "link", path, link, "", 0) })
}

func (p *powerFS) Mkdir(path string) error {
	return p.do("mkdir", path, "", func() error { return p.note(p.FS.Mkdir(path), "mkdir", path, "", "", 0) })
}

func (p *powerFS) Rename(from, to string) error {
	return p.do("rename", from, to, func() error { return p.note(p.FS.Rename(from, to), "rename", from, to, "", 0) })
}

func (p *powerFS) Remove(path string) error {
	return p.do("remove", path, "", func() error { return p.note(p.FS.Remove(path), "remove", path, "", "", 0) })
}

func (p *powerFS) SyncDir(path string) error {
	return p.do("sync", path, "", func() error { return p.note(p.FS.SyncDir(path), "sync", path, "", "", 0) })
}

// cut returns what is left after a power cut.
func (p *powerFS) cut(r *rand.Rand) *Mem {
	left := &Mem{nodes: maps.Clone(p.start.nodes)}
	for _, o := range p.ops {
		if o.durable || r.IntN(2) == 0 {
			_ = o.redo(left) // may be impossible without one that is lost
		}
	}
	return left
}

func TestPowerCutAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	total := w.steps(t)
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	for k := range total + 1 {
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(k), uint64(round)))
			what := fmt.Sprintf("power cut at %d, round %d", k, round)
			w.powerCut(t, what, k, round%2 == 1, r)
		}
	}
}

// powerCut runs the patch until the cut at operation k. If bad, a step after
// the commit fails, so that the cut hits the retreat.
func (w *twenty) powerCut(t *testing.T, what string, k int, bad bool, r *rand.Rand) {
	t.Helper()
	mem := w.fresh()
	n, committed := 0, false
	broken := !bad
	p := &powerFS{hookFS: &hookFS{FS: mem}, start: w.fresh()}
	p.hook = func(op, path, _ string) error {
		p.dead = n == k
		n++
		step := op == "rename" || op == "remove" && !strings.Contains(path, ".fermata-")
		if committed && !broken && step && r.IntN(10) == 0 {
			broken = true
			return syscall.EIO
		}
		return nil
	}
	plan := w.verify(t, mem)
	rec := plan.Record()
	err := Apply(t.Context(), p, plan, rec, func(Record) error {
		committed = true // durable, says the contract
		return nil
	})
	left := p.cut(r)
	var incomplete *IncompleteError
	if !p.dead && !errors.As(err, &incomplete) {
		w.expect(t, what+", after the end", left, err == nil)
		return
	}
	applied, err := Recover(left, rec, committed)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	w.expect(t, what, left, applied)
}
