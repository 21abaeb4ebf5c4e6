package file_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/disktest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/longtest"
)

// afterCuts cuts the power of a disk many times and looks at what each cut leaves.
func afterCuts(d *disktest.Disk, look func(seed uint64, left *disktest.Disk)) {
	for seed := range uint64(longtest.Default(40, 12)) {
		look(seed, d.PowerCut(rand.New(rand.NewPCG(seed, 7))))
	}
}

// Records that were set aside do not come back.
func TestPowerCutAfterSetAside(t *testing.T) {
	d, p := written(t, unchanged)
	synctest.Test(t, func(t *testing.T) {
		d := d.Clone()
		must(t, modelStore(d).SetAside(t.Context(), sampleID, 2))
		afterCuts(d, func(seed uint64, left *disktest.Disk) {
			s := modelStore(left)
			j, err := s.Open(t.Context(), sampleID)
			must(t, err)
			if diff := cmp.Diff(strings.Join(p.records[:2], " "), kinds(t, j)); diff != "" {
				t.Errorf("seed %d: %s", seed, diff)
			}
			must(t, j.Close())
			aside, err := left.ReadFile(pathOf(t, s, sampleID) + ".damaged")
			must(t, err)
			for _, kind := range p.records[2:] {
				if !strings.Contains(string(aside), `"kind":"`+kind+`"`) {
					t.Errorf("seed %d: record %s is lost", seed, kind)
				}
			}
		})
	})
}

// What a writer saves when another program has replaced its file survives a power cut: from the moment in which it says
// so, and after Close also what was recorded later.
func TestPowerCutAfterRescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, _ := begin(t, s, sampleID, "a")
		d.Put(pathOf(t, s, sampleID), "something else\n", 0o600)
		j.Append(e("b"))
		synctest.Wait()
		var changed *file.ChangedError
		if _, err := j.Durable(); !errors.As(err, &changed) || changed.Rescued == "" {
			t.Fatalf("Durable = %v", err)
		}
		expectRescued(t, d, changed.Rescued, "a", "b")
		j.Append(e("c"))
		if err := j.Close(); !errors.As(err, &changed) {
			t.Fatalf("Close = %v", err)
		}
		expectRescued(t, d, changed.Rescued, "a", "b", "c")
	})
}

func expectRescued(t *testing.T, d *disktest.Disk, path string, kinds ...string) {
	t.Helper()
	afterCuts(d, func(seed uint64, left *disktest.Disk) {
		data, err := left.ReadFile(path)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, kind := range kinds {
			if !strings.Contains(string(data), `"kind":"`+kind+`"`) {
				t.Errorf("seed %d: record %s is lost", seed, kind)
			}
		}
	})
}

// What was rescued is in the journal, durably, before the file with it is removed.
func TestPowerCutDuringMerge(t *testing.T) {
	base := writeAfter(t, nil, "k1", "k2")
	full := writeAfter(t, base, "a1", "a2")
	d := emptyDisk()
	synctest.Test(t, func(t *testing.T) {
		j, _ := begin(t, modelStore(d), sampleID)
		must(t, j.Close())
		path := pathOf(t, modelStore(d), sampleID)
		d.Put(path, string(base), 0o600)
		d.Put(path+".rescued1", string(full), 0o600)
	})
	p := promise{records: []string{"conversation_started", "k1", "k2", "a1", "a2"}}
	n := cutEverywhere(t, d, p, func(ctx context.Context, s *file.Store, q *promise) error {
		q.records = append([]string(nil), q.records...)
		return openAndAdd()(ctx, s, q)
	})
	if n < 6 && !t.Failed() {
		t.Errorf("only %d operations on the disk", n)
	}

	// A cut right after the removal, whatever it keeps: the removal alone, too.
	synctest.Test(t, func(t *testing.T) {
		d := d.Clone()
		d.Hook = func(op disktest.Op) error {
			if op.Name == "sync" && strings.HasSuffix(op.Path, ".jsonl") && !rescuedLeft(d) {
				d.Kill()
			}
			return nil
		}
		if _, err := modelStore(d).Open(t.Context(), sampleID); err == nil {
			t.Fatal("it was not killed")
		}
		afterCuts(d, func(seed uint64, left *disktest.Disk) { p.check(t, fmt.Sprint("removed, seed ", seed), left) })
	})
}

func rescuedLeft(d *disktest.Disk) bool {
	for _, path := range d.Paths() {
		if strings.HasPrefix(filepath.Ext(path), ".rescued") {
			return true
		}
	}
	return false
}
