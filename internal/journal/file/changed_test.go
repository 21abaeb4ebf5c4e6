package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/disktest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
)

// otherID is a conversation of the same day.
const otherID = "01997f3a-5b2c-7d4e-8f90-cba987654321"

// begin creates a conversation as the engine does: its first record names it.
func begin(t *testing.T, s journal.Store, id string, kinds ...string) (journal.Journal, *promise) {
	t.Helper()
	j, err := s.Create(t.Context(), id, time.Date(2025, 9, 24, 23, 59, 1, 0, time.UTC))
	must(t, err)
	j.Append(journal.Entry{Kind: "conversation_started", Body: json.RawMessage(fmt.Sprintf(`{"id":%q}`, id))})
	p := &promise{records: []string{"conversation_started"}}
	for _, k := range kinds {
		must(t, p.add(j, k))
	}
	return j, p
}

func pathOf(t *testing.T, s journal.Store, id string) string {
	t.Helper()
	info, err := s.Stat(t.Context(), id)
	must(t, err)
	return info.Path
}

// Whoever removes lock files does not get a second writer.
func TestRemovedLockFileDoesNotUnlock(t *testing.T) {
	home, s := lockedHome(t)
	o := startOwner(t, "owner", home)
	locks, err := filepath.Glob(pathOf(t, s, sampleID) + ".lock")
	must(t, err)
	for _, l := range locks {
		must(t, os.Remove(l))
	}
	err = openLocked(t, home)
	var locked *journal.LockedError
	if len(locks) != 1 || !errors.As(err, &locked) || locked.PID != o.Process.Pid {
		t.Errorf("after %v was removed: Open = %v, want that process %d has it open", locks, err, o.Process.Pid)
	}
	if err := s.Delete(t.Context(), sampleID); !errors.As(err, &locked) {
		t.Errorf("Delete = %v", err)
	}
}

// A writer whose file is changed by another program stops, says so, and what it
// had is there afterwards, also what it was just about to write.
func TestWriterNoticesThatItsFileWasChanged(t *testing.T) {
	elsewhere := journaltest.Home + "/elsewhere"
	for what, change := range map[string]func(d *disktest.Disk, path string) error{
		"replaced": func(d *disktest.Disk, path string) error {
			d.Put(elsewhere, "something else\n", 0o600)
			return d.Rename(elsewhere, path)
		},
		"moved or removed": func(d *disktest.Disk, path string) error { return d.Rename(path, elsewhere) },
		"written to": func(d *disktest.Disk, path string) error {
			f, err := d.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write([]byte("one more line\n"))
			}
			return err
		},
	} {
		for _, when := range []string{"before a record", "before a text", "during a sync", "before the end"} {
			t.Run(what+" "+when, func(t *testing.T) { testChanged(t, what, when, change) })
		}
	}
}

func testChanged(t *testing.T, what, when string, change func(*disktest.Disk, string) error) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, p := begin(t, s, sampleID, "a", "b")
		path := pathOf(t, s, sampleID)
		switch when {
		case "before a record":
			must(t, change(d, path))
			j.Append(e("c"))
		case "before a text":
			must(t, change(d, path))
			j.Open("s").Write("1.1.0", "message", "text")
			time.Sleep(time.Second)
			j.Append(e("c"))
		case "during a sync":
			d.Hook = func(op disktest.Op) error {
				if op.Name != "sync" {
					return nil
				}
				d.Hook = nil
				return change(d, path)
			}
			j.Append(e("c"))
		case "before the end":
			must(t, p.add(j, "c"))
			p.records = p.records[:3]
			must(t, change(d, path))
		}
		p.records = append(p.records, "c")
		synctest.Wait()
		var changed *file.ChangedError
		if when != "before the end" { // there it has nothing to do, and looks when it is closed
			if _, err := j.Durable(); !errors.As(err, &changed) {
				t.Fatalf("Durable = %v", err)
			}
		}
		if data, _ := d.ReadFile(fmt.Sprint(rescued(changed))); when == "before a record" && !strings.Contains(string(data), `"kind":"c"`) {
			t.Errorf("what was to be written is not saved: %s", data)
		}
		if err := j.Close(); !errors.As(err, &changed) || changed.What != what || changed.Rescued == "" {
			t.Fatalf("Close = %v", err)
		}
		if _, err := j.Durable(); !errors.As(err, &changed) {
			t.Errorf("Durable = %v", err)
		}
		if what == "replaced" { // by nothing of ours; the next repair may use what was rescued
			data, err := d.ReadFile(changed.Rescued)
			must(t, err)
			d.Put(path, string(data), 0o600)
		}
		p.check(t, what, d)
	})
}

func rescued(e *file.ChangedError) string {
	if e == nil {
		return ""
	}
	return e.Rescued
}

// writeAfter returns the file of a conversation with the records that a process with
// it open would write after those in data.
func writeAfter(t *testing.T, data []byte, kinds ...string) []byte {
	t.Helper()
	var after []byte
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, p := begin(t, s, sampleID)
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		if data != nil {
			d.Put(path, string(data), 0o600)
		}
		j, err := s.Open(t.Context(), sampleID)
		must(t, err)
		for i, k := range kinds {
			must(t, p.add(j, k))
			j.Open("s").Write(fmt.Sprintf("2.1.%d", i), "message", "text of "+k)
			time.Sleep(time.Second)
		}
		must(t, j.Close())
		after, err = d.ReadFile(path)
		must(t, err)
	})
	return after
}

// opened opens a file of that content and returns the kinds of its records, and
// what was set aside.
func opened(t *testing.T, data []byte) (kinds []string, texts, aside string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, _ := begin(t, s, sampleID)
		must(t, j.Close())
		path := pathOf(t, s, sampleID)
		d.Put(path, string(data), 0o600)
		j, err := s.Open(t.Context(), sampleID)
		must(t, err)
		recs, err := j.Read(t.Context(), 0, 1000)
		must(t, err)
		kinds = kindsOf(recs)
		for _, c := range openItems(t, j) {
			texts += c.Text + ";"
		}
		must(t, j.Close())
		b, _ := d.ReadFile(path + ".damaged")
		aside = string(b)
		p := promise{records: kinds}
		p.check(t, "again", d)
	})
	return kinds, texts, aside
}

func lines(data []byte) []string {
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
}

// What two writers have left: the records of one of them, whole, and those of
// the other beside it.
func TestTwoWritersLeaveOneConversation(t *testing.T) {
	base := writeAfter(t, nil, "k1", "k2")
	n := len(lines(base))
	a := lines(writeAfter(t, base, "a1", "a2"))[n:]
	b := lines(writeAfter(t, base, "b1", "b2", "b3"))[n:]
	for name, mixed := range map[string][]string{
		"one after the other": slices.Concat(a, b),
		"the longer first":    slices.Concat(b, a),
		"in turns":            {a[0], b[0], a[1], b[1], b[2], a[2], a[3], b[3], b[4], b[5]},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, texts, aside := opened(t, []byte(string(base)+strings.Join(mixed, "")))
			if diff := cmp.Diff([]string{"conversation_started", "k1", "k2", "b1", "b2", "b3"}, kinds); diff != "" {
				t.Error(diff)
			}
			for _, l := range a {
				if !strings.Contains(aside, l) {
					t.Errorf("not set aside: %s", l)
				}
			}
			if strings.Contains(texts, "text of a") || !strings.Contains(texts, "text of b3") || strings.Contains(aside, `"kind":"b`) {
				t.Errorf("open items are %q, set aside %q", texts, aside)
			}
		})
	}
}

// A record that continues another than the one before it is noticed, although its
// number fits.
func TestRecordThatDoesNotContinue(t *testing.T) {
	base := writeAfter(t, nil, "k1", "k2")
	n := len(lines(base))
	a := lines(writeAfter(t, base, "a1", "a2"))[n:]
	b := lines(writeAfter(t, base, "b1", "b2"))[n:]
	kinds, _, aside := opened(t, []byte(string(base)+a[0]+b[2]))
	if diff := cmp.Diff([]string{"conversation_started", "k1", "k2", "a1"}, kinds); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(aside, `"kind":"b2"`) {
		t.Errorf("set aside %q", aside)
	}
}

// The file that a repair puts in the place of the damaged one is locked too.
func TestRepairedFileIsLocked(t *testing.T) {
	d, _ := written(t, func(b []byte) []byte { return bytes.Replace(b, []byte(`"kind":"k1"`), []byte(`"kind":"kX"`), 1) })
	synctest.Test(t, func(t *testing.T) {
		d := d.Clone()
		s := modelStore(d)
		j, err := s.Open(t.Context(), sampleID)
		must(t, err)
		must(t, d.Remove(pathOf(t, s, sampleID)+".lock"))
		var locked *journal.LockedError
		if _, err := modelStore(d.Reopen()).Open(t.Context(), sampleID); !errors.As(err, &locked) {
			t.Errorf("Open = %v", err)
		}
		must(t, j.Close())
	})
}

// Lines of another conversation are recognized wherever they are.
func TestLinesOfAnotherConversation(t *testing.T) {
	own := writeAfter(t, nil, "k1", "k2")
	var foreign []string
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		s := modelStore(d)
		j, p := begin(t, s, otherID)
		for i := range 12 {
			must(t, p.add(j, fmt.Sprint("x", i)))
		}
		must(t, j.Close())
		data, err := d.ReadFile(pathOf(t, s, otherID))
		must(t, err)
		foreign = lines(data)
	})
	mine := lines(own)
	for name, mixed := range map[string][]string{
		"appended":                       slices.Concat(mine, foreign),
		"its end":                        slices.Concat(mine, foreign[4:]),
		"in between":                     slices.Concat(mine[:2], foreign[3:7], mine[2:]),
		"in its place":                   slices.Concat(mine[:len(mine)-1], foreign[3:4], mine[len(mine)-1:]),
		"one in front":                   slices.Concat(foreign[:1], mine),
		"all in front":                   slices.Concat(foreign, mine),
		"its end in front":               slices.Concat(foreign[4:], mine),
		"garbage and one in front":       slices.Concat([]string{"garbage\n"}, foreign[:1], mine),
		"between all":                    {foreign[0], mine[0], foreign[1], mine[1], foreign[2], mine[2], foreign[3], mine[3], foreign[4], mine[4], foreign[5]},
		"of an earlier version in front": slices.Concat([]string{withoutLink(foreign[0])}, mine),
	} {
		t.Run(name, func(t *testing.T) {
			kinds, _, aside := opened(t, []byte(strings.Join(mixed, "")))
			if diff := cmp.Diff([]string{"conversation_started", "k1", "k2"}, kinds); diff != "" {
				t.Error(diff)
			}
			for _, l := range mixed {
				if slices.Contains(foreign, l) && !strings.Contains(aside, strings.TrimSpace(l)) {
					t.Errorf("not set aside: %s", l)
				}
			}
		})
	}
}

// withoutLink returns a line as earlier versions wrote it.
func withoutLink(line string) string {
	from, to := strings.LastIndex(line, `,"of":"`), strings.LastIndex(line, `,"sum":"`)
	return string(resum([]byte(line[:from] + line[to:])))
}

// twoSwapped is a disk on which two conversations have each other's file.
func twoSwapped(t *testing.T) *disktest.Disk {
	t.Helper()
	d := emptyDisk()
	synctest.Test(t, func(t *testing.T) {
		s := modelStore(d)
		j, _ := begin(t, s, sampleID, "mine")
		must(t, j.Close())
		k, _ := begin(t, s, otherID, "other", "other")
		must(t, k.Close())
		a, b := pathOf(t, s, sampleID), pathOf(t, s, otherID)
		must(t, errors.Join(d.Rename(a, "/x"), d.Rename(b, a), d.Rename("/x", b)))
	})
	return d.Clone()
}

func TestSwappedFiles(t *testing.T) {
	d := twoSwapped(t)
	s := modelStore(d)
	before, err := d.ReadFile(pathOf(t, s, sampleID))
	must(t, err)
	var wrong *file.MisplacedError
	if _, err := s.Open(t.Context(), sampleID); !errors.As(err, &wrong) || wrong.Holds != otherID {
		t.Errorf("Open = %v", err)
	}
	if now, _ := d.ReadFile(pathOf(t, s, sampleID)); string(now) != string(before) {
		t.Error("the file was changed")
	}
	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	if faults, err := v.Check(t.Context()); len(faults) != 1 || !strings.Contains(faults[0].Text, otherID) || err != nil {
		t.Errorf("Check = %v, %v", faults, err)
	}
	v.Close()
	_, err = s.Repair(t.Context(), sampleID)
	must(t, err)
	expectBoth(t, "repaired", s)
}

func expectBoth(t *testing.T, what string, s *file.Store) {
	t.Helper()
	for id, want := range map[string][]string{sampleID: {"conversation_started", "mine"}, otherID: {"conversation_started", "other", "other"}} {
		j, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		recs, err := j.Read(t.Context(), 0, 10)
		must(t, err)
		if diff := cmp.Diff(want, kindsOf(recs)); diff != "" {
			t.Errorf("%s: %s: %s", what, id, diff)
		}
		must(t, j.Close())
	}
}

// Wherever putting files back is interrupted, repairing both again completes it.
func TestSwappedFilesAreRepairedInAnyCase(t *testing.T) {
	for k := 0; ; k++ {
		d, n := twoSwapped(t), 0
		d.Hook = func(disktest.Op) error {
			if n == k {
				d.Kill()
			}
			n++
			return nil
		}
		repair := func(ctx context.Context, s *file.Store) error {
			var err error
			for range 2 {
				for _, id := range []string{sampleID, otherID} {
					_, e := s.Repair(ctx, id)
					err = errors.Join(err, e)
				}
			}
			return err
		}
		if err := repair(t.Context(), modelStore(d)); err == nil && !d.Killed() {
			break
		}
		next := modelStore(d.Reopen())
		_ = repair(t.Context(), next) // a file may be found only when the other one is in its place
		expectBoth(t, fmt.Sprint("killed at ", k), next)
	}
}

// A file that is the copy of another conversation is left alone.
func TestCopyOfAnotherConversation(t *testing.T) {
	d := emptyDisk()
	s := modelStore(d)
	j, _ := begin(t, s, sampleID, "mine")
	must(t, j.Close())
	k, _ := begin(t, s, otherID, "other")
	must(t, k.Close())
	data, err := d.ReadFile(pathOf(t, s, otherID))
	must(t, err)
	d.Put(pathOf(t, s, sampleID), string(data), 0o600)
	if _, err := s.Repair(t.Context(), sampleID); err == nil || !strings.Contains(err.Error(), "a copy of conversation "+otherID) {
		t.Errorf("Repair = %v", err)
	}
	if now, _ := d.ReadFile(pathOf(t, s, sampleID)); string(now) != string(data) {
		t.Error("the file was changed")
	}
}
