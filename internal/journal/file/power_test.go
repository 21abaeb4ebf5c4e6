package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/disktest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/longtest"
)

// A promise is what a process was told before its power was cut.
type promise struct {
	records  []string // kinds of records that were durable
	aside    []byte   // damage that must not be lost: it is in the journal or beside it
	archived bool
	deleted  bool
	maybe    bool // a deletion has begun: it is there or not
}

func modelStore(d *disktest.Disk) *file.Store {
	return file.New(journaltest.Home, file.Options{FS: journaltest.Model{Disk: d}})
}

func emptyDisk() *disktest.Disk {
	d := disktest.New()
	d.Put(filepath.Dir(journaltest.Home), "", fs.ModeDir|0o755)
	return d
}

// cutEverywhere runs a process on a copy of the disk, again and again, with the
// power cut before its first operation on the disk, its second, and so on. Each
// time it checks that what it was promised is there. It returns how many operations
// there are.
func cutEverywhere(t *testing.T, disk *disktest.Disk, before promise, process func(ctx context.Context, s *file.Store, p *promise) error) int {
	t.Helper()
	for k := 0; ; k++ {
		killed := false
		synctest.Test(t, func(t *testing.T) {
			d, n := disk.Clone(), 0
			d.Hook = func(disktest.Op) error {
				if n == k {
					d.Kill()
				}
				n++
				return nil
			}
			p := before
			err := process(t.Context(), modelStore(d), &p)
			killed = d.Killed()
			if err != nil && !killed {
				t.Fatalf("undisturbed: %v", err)
			}
			p.check(t, fmt.Sprintf("killed at %d", k), d.Clone())
			for seed := range uint64(longtest.Default(12, 5)) {
				r := rand.New(rand.NewPCG(uint64(k), seed))
				p.check(t, fmt.Sprintf("power cut at %d, seed %d", k, seed), d.PowerCut(r))
			}
			p.continueAfterKill(t, fmt.Sprintf("killed at %d, then a power cut", k), d.Reopen())
		})
		if t.Failed() || !killed {
			return k
		}
	}
}

// continueAfterKill is another process that opens what the killed one left, and
// whose power is cut when it is done.
func (p *promise) continueAfterKill(t *testing.T, what string, d *disktest.Disk) {
	t.Helper()
	j, err := modelStore(d).Open(t.Context(), sampleID)
	if errors.Is(err, journal.ErrNotFound) {
		return
	}
	must(t, err)
	recs, err := j.Read(t.Context(), 0, 1000)
	must(t, err)
	q := *p
	q.records = kindsOf(recs) // whatever it was shown
	must(t, q.add(j, "next"))
	must(t, j.Close())
	for seed := range uint64(longtest.Default(12, 5)) {
		q.check(t, fmt.Sprint(what, ", seed ", seed), d.PowerCut(rand.New(rand.NewPCG(seed, seed))))
	}
}

// check opens what is left, in good order, and holds it against the promise.
func (p *promise) check(t *testing.T, what string, d *disktest.Disk) {
	t.Helper()
	s := modelStore(d)
	j, err := s.Open(t.Context(), sampleID)
	if errors.Is(err, journal.ErrNotFound) && (p.deleted || p.maybe || len(p.records) == 0) {
		return
	}
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	if p.deleted {
		t.Errorf("%s: a deleted conversation is back", what)
	}
	recs, err := j.Read(t.Context(), 0, 1000)
	must(t, err)
	for i, kind := range p.records {
		if i >= len(recs) || recs[i].Kind != kind {
			t.Errorf("%s: record %d of %d is lost, there are %v", what, i+1, len(p.records), kindsOf(recs))
			break
		}
	}
	if state := string(j.Recovery().Checkpoint); state != "" && state != fmt.Sprint("state of ", j.Recovery().CheckpointSeq) {
		t.Errorf("%s: the checkpoint is %q", what, state)
	}
	j.Append(e("after"))
	must(t, j.Close())

	infos, err := s.List(t.Context())
	must(t, err)
	if len(infos) != 1 || p.archived && !infos[0].Archived {
		t.Errorf("%s: list is %+v", what, infos)
	}
	aside, _ := d.ReadFile(infos[0].Path + ".damaged")
	if !bytes.Contains(aside, p.aside) {
		t.Errorf("%s: damage is lost: %q", what, aside)
	}
	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	if faults, err := v.Check(t.Context()); len(faults) > 0 || err != nil {
		t.Errorf("%s: after opening: %v, %v", what, faults, err)
	}
}

func kindsOf(recs []journal.Record) (all []string) {
	for _, r := range recs {
		all = append(all, r.Kind)
	}
	return all
}

// add appends a record and notes it when it is durable.
func (p *promise) add(j journal.Journal, kind string) error {
	n := j.Append(e(kind))
	for {
		d, err := j.Durable()
		if err != nil {
			return err
		}
		if d >= n {
			p.records = append(p.records, kind)
			return nil
		}
		<-j.Notify()
	}
}

// written is a disk with a conversation whose file is changed afterwards.
func written(t *testing.T, change func([]byte) []byte) (*disktest.Disk, promise) {
	t.Helper()
	var p promise
	d := emptyDisk()
	synctest.Test(t, func(t *testing.T) {
		j, err := modelStore(d).Create(t.Context(), sampleID, time.Now())
		must(t, err)
		for i := range 4 {
			must(t, p.add(j, fmt.Sprint("k", i)))
			j.Open("s").Write(fmt.Sprintf("1.1.%d", i), "message", "text")
		}
		must(t, j.Close())
		infos, err := modelStore(d).List(t.Context())
		must(t, err)
		data, err := d.ReadFile(infos[0].Path)
		must(t, err)
		d.Put(infos[0].Path, string(change(data)), 0o600)
	})
	return d, p
}

func unchanged(data []byte) []byte { return data }

func TestPowerCutDuringCreate(t *testing.T) {
	cutEverywhere(t, emptyDisk(), promise{}, func(ctx context.Context, s *file.Store, p *promise) error {
		j, err := s.Create(ctx, sampleID, time.Now())
		if err != nil {
			return err
		}
		return errors.Join(p.add(j, "a"), p.add(j, "b"), j.Close())
	})
}

// Directories that a killed process has made, and not made durable, are made
// durable by the next one.
func TestPowerCutAfterKilledCreate(t *testing.T) {
	for k := range 30 {
		synctest.Test(t, func(t *testing.T) {
			d, n := emptyDisk(), 0
			d.Hook = func(disktest.Op) error {
				if n == k {
					d.Kill()
				}
				n++
				return nil
			}
			var p promise
			if j, err := modelStore(d).Create(t.Context(), sampleID, time.Now()); err == nil {
				j.Close()
			}
			next := d.Reopen()
			j, err := modelStore(next).Open(t.Context(), sampleID)
			if errors.Is(err, journal.ErrNotFound) {
				j, err = modelStore(next).Create(t.Context(), sampleID, time.Now())
			}
			must(t, err)
			must(t, p.add(j, "a"))
			must(t, j.Close())
			for seed := range uint64(longtest.Default(12, 5)) {
				p.check(t, fmt.Sprintf("killed at %d, seed %d", k, seed), next.PowerCut(rand.New(rand.NewPCG(uint64(k), seed))))
			}
		})
	}
}

// openAndAdd opens the conversation, which repairs it, and appends to it.
func openAndAdd(lost ...int) func(context.Context, *file.Store, *promise) error {
	return func(ctx context.Context, s *file.Store, p *promise) error {
		for _, i := range lost {
			p.records[i] = "damaged"
		}
		j, err := s.Open(ctx, sampleID)
		if err != nil {
			return err
		}
		return errors.Join(p.add(j, "more"), j.Close())
	}
}

func TestPowerCutDuringRepair(t *testing.T) {
	line := func(data []byte, kind string) []byte {
		for l := range bytes.Lines(data) {
			if bytes.Contains(l, []byte(`"kind":"`+kind+`"`)) {
				return l
			}
		}
		panic("no such line")
	}
	for name, test := range map[string]struct {
		change func([]byte) []byte
		aside  string
		lost   []int
		min    int // operations on the disk
	}{
		"nothing to do": {unchanged, "", nil, 4},
		"torn end":      {func(b []byte) []byte { return append(b, `{"n":5,"t":"20`...) }, `{"n":5,"t":"20`, nil, 8},
		"no line break": {func(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }, "", nil, 5},
		"damaged line": {
			func(b []byte) []byte { return bytes.Replace(b, []byte(`"kind":"k1"`), []byte(`"kind":"kX"`), 1) },
			`"kind":"kX"`,
			[]int{1},
			9,
		},
		"garbage between": {
			func(b []byte) []byte {
				return bytes.Replace(b, line(b, "k2"), append([]byte("garbage\n"), line(b, "k2")...), 1)
			},
			"garbage\n", nil, 9,
		},
		"missing line":  {func(b []byte) []byte { return bytes.Replace(b, line(b, "k1"), nil, 1) }, "", []int{1}, 7},
		"repeated line": {func(b []byte) []byte { return append(b, line(b, "k2")...) }, `"kind":"k2"`, nil, 8},
	} {
		t.Run(name, func(t *testing.T) {
			d, p := written(t, test.change)
			p.aside = []byte(test.aside)
			n := cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, q *promise) error {
				q.records = append([]string(nil), q.records...)
				return openAndAdd(test.lost...)(ctx, s, q)
			})
			if n < test.min && !t.Failed() {
				t.Errorf("only %d operations on the disk", n)
			}
		})
	}
}

// A batch that a power cut left unfinished is set aside, also if the power fails again meanwhile.
func TestPowerCutDuringRepairOfUnfinishedBatch(t *testing.T) {
	d, p := emptyDisk(), promise{}
	synctest.Test(t, func(t *testing.T) {
		j, err := modelStore(d).Create(t.Context(), sampleID, time.Now())
		must(t, err)
		must(t, p.add(j, "alone"))
		j.Append(e("first"), e("middle"), e("last"))
		must(t, j.Close())
		infos, err := modelStore(d).List(t.Context())
		must(t, err)
		data, err := d.ReadFile(infos[0].Path)
		must(t, err)
		lines := bytes.SplitAfter(data, []byte("\n"))
		d.Put(infos[0].Path, string(bytes.Join(lines[:3], nil)), 0o600)
		p.aside = slices.Concat(lines[1], lines[2])

		v, err := modelStore(d).View(t.Context(), sampleID)
		must(t, err)
		defer v.Close()
		faults, err := v.Check(t.Context())
		must(t, err)
		if len(faults) != 1 || faults[0].Line != 2 || faults[0].Text != "unfinished batch of records" || !faults[0].AtEnd {
			t.Errorf("faults are %+v", faults)
		}
		c, err := modelStore(d.Clone()).Open(t.Context(), sampleID)
		must(t, err)
		if rec := c.Recovery(); rec.Last != 1 || rec.Torn != int64(len(p.aside)) || len(rec.Damaged) > 0 {
			t.Errorf("recovery is %+v", rec)
		}
		must(t, c.Close())
	})
	cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, q *promise) error {
		q.records = slices.Clone(q.records)
		return openAndAdd()(ctx, s, q)
	})
}

// A power cut while a batch is written leaves all of it or nothing.
func TestPowerCutDuringBatch(t *testing.T) {
	d, p := written(t, unchanged)
	size := len(p.records)
	for k := range 12 {
		synctest.Test(t, func(t *testing.T) {
			d, n := d.Clone(), 0
			d.Hook = func(disktest.Op) error {
				if n == k {
					d.Kill()
				}
				n++
				return nil
			}
			if j, err := modelStore(d).Open(t.Context(), sampleID); err == nil {
				j.Append(e("first"), e("middle"), e("last"))
				j.Close()
			}
			for seed := range uint64(longtest.Default(200, 40)) {
				j, err := modelStore(d.PowerCut(rand.New(rand.NewPCG(uint64(k), seed)))).Open(t.Context(), sampleID)
				must(t, err)
				recs, err := j.Read(t.Context(), 0, 100)
				must(t, err)
				if n := len(recs); n != size && n != size+3 {
					t.Errorf("power cut at %d, seed %d: %q", k, seed, kindsOf(recs))
				}
				must(t, j.Close())
			}
		})
	}
}

func TestPowerCutDuringCheckpoint(t *testing.T) {
	d, p := written(t, unchanged)
	cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, p *promise) error {
		j, err := s.Open(ctx, sampleID)
		if err != nil {
			return err
		}
		defer j.Close()
		for _, seq := range []uint64{2, 4} {
			if err := j.Checkpoint(ctx, seq, fmt.Append(nil, "state of ", seq)); err != nil {
				return err
			}
		}
		if err := p.add(j, "more"); err != nil {
			return err
		}
		return j.Checkpoint(ctx, 5, []byte("state of 5"))
	})
}

func TestPowerCutDuringArchive(t *testing.T) {
	d, p := written(t, func(b []byte) []byte { return append(b, "torn"...) })
	p.aside = []byte("torn")
	cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, p *promise) error {
		if err := openAndAdd()(ctx, s, p); err != nil {
			return err
		}
		err := s.Archive(ctx, sampleID)
		p.archived = err == nil
		return err
	})
}

func TestPowerCutDuringDelete(t *testing.T) {
	d, p := written(t, unchanged)
	cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, p *promise) error {
		p.maybe = true
		err := s.Delete(ctx, sampleID)
		p.deleted = err == nil
		return err
	})
}

// A lock file that a power cut left, whatever is in it, locks nothing.
func TestPowerCutLeavesLockFile(t *testing.T) {
	for _, text := range []string{"", "1\n", strings.Repeat("\x00", 40), `{"pid":1,"host":"elsewhere"}` + "\n"} {
		d, p := written(t, unchanged)
		for _, path := range d.Paths() {
			if strings.HasSuffix(path, ".jsonl") {
				d.Put(path+".lock", text, 0o600)
			}
		}
		cutEverywhere(t, d, p, openAndAdd())
	}
}

// What was written to open items is durable when the journal is closed.
func TestPowerCutAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		j, err := modelStore(d).Create(t.Context(), sampleID, time.Now())
		must(t, err)
		var p promise
		must(t, p.add(j, "a"))
		j.Open("s").Write("1.1.0", "message", "text")
		must(t, j.Close())
		for seed := range uint64(20) {
			k, err := modelStore(d.PowerCut(rand.New(rand.NewPCG(seed, 1)))).Open(t.Context(), sampleID)
			must(t, err)
			if items := openItems(t, k); len(items) != 1 || items[0].Text != "text" {
				t.Errorf("seed %d: open items are %v", seed, items)
			}
			must(t, k.Close())
		}
	})
}

func modelFS(d *disktest.Disk) file.FS { return journaltest.Model{Disk: d} }
