package patch

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
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
	durable bool
}

// note is called by the hook with each operation before it happens.
func (p *powerFS) note(op, path, to string, data string, mode fs.FileMode) {
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
		o.redo = func(m *Mem) error { return m.Remove(path) }
	case "sync":
		for _, other := range p.ops {
			other.durable = other.durable || other.dir == path
		}
		return
	}
	p.ops = append(p.ops, o)
}

func (p *powerFS) Create(path string, data []byte, mode fs.FileMode, like string) error {
	return p.do("create", path, "", func() error {
		p.note("create", path, "", string(data), mode)
		return p.FS.Create(path, data, mode, like)
	})
}

func (p *powerFS) Symlink(target, path string) error {
	return p.do("symlink", path, "", func() error {
		p.note("symlink", path, target, "", 0)
		return p.FS.Symlink(target, path)
	})
}

func (p *powerFS) Link(path, link string) error {
	return p.do("link", path, link, func() error { p.note("link", path, link, "", 0); return p.FS.Link(path, link) })
}

func (p *powerFS) Mkdir(path string) error {
	return p.do("mkdir", path, "", func() error { p.note("mkdir", path, "", "", 0); return p.FS.Mkdir(path) })
}

func (p *powerFS) Rename(from, to string) error {
	return p.do("rename", from, to, func() error { p.note("rename", from, to, "", 0); return p.FS.Rename(from, to) })
}

func (p *powerFS) Remove(path string) error {
	return p.do("remove", path, "", func() error { p.note("remove", path, "", "", 0); return p.FS.Remove(path) })
}

func (p *powerFS) SyncDir(path string) error {
	return p.do("sync", path, "", func() error { p.note("sync", path, "", "", 0); return p.FS.SyncDir(path) })
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
		rounds = 1
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
		if committed && !broken && r.IntN(10) == 0 && (op == "rename" || op == "remove") {
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
	if !p.dead && err == nil {
		w.expect(t, what+", after the end", left, true)
		return
	}
	applied, err := Recover(left, rec, committed)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	w.expect(t, what, left, applied)
}
