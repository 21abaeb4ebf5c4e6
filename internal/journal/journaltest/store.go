package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/longtest"
)

func checkpointComesBack(e *env) {
	j := e.create()
	s := j.Open("s")
	s.Write("1.1.0", "message", "begun before, ")
	e.sleep(time.Second)
	for i := range 20 {
		j.Append(entry("a", i))
	}
	e.settle()
	e.must(j.Checkpoint(e.Context(), 5, []byte("too old")))
	e.must(j.Checkpoint(e.Context(), 12, []byte("state\n\x00of 12")))
	s.Write("1.1.0", "message", "ended after")
	j.Append(entry("b", 1))
	e.must(j.Close())

	k := e.open()
	want := journal.Recovery{Checkpoint: []byte("state\n\x00of 12"), CheckpointSeq: 12, Last: 21}
	e.equal("Recovery", k.Recovery(), want)
	recs := e.read(k, 0, 100)
	if len(recs) != 21 || recs[4].Kind != "a" || recs[20].Kind != "b" {
		e.Errorf("records after a checkpoint: %v", kinds(recs))
	}
	e.equal("OpenItems", e.openItems(k), []journal.Chunk{chunk("1.1.0", "message", 0, "begun before, ended after")})
	e.must(k.Checkpoint(e.Context(), 21, nil))
	e.must(k.Close())
	j = e.open()
	e.equal("CheckpointSeq", j.Recovery().CheckpointSeq, 21)
	e.must(j.Close())
}

func checkpointNeedsVisibleRecord(e *env) {
	e.syncTime = time.Second
	j := e.create()
	j.Append(entry("a", 1))
	for _, seq := range []uint64{0, 1, 2} {
		if j.Checkpoint(e.Context(), seq, nil) == nil {
			e.Errorf("checkpoint at %d before anything was durable", seq)
		}
	}
	e.settle()
	e.must(j.Checkpoint(e.Context(), 1, nil))
	e.must(j.Close())
}

func createTwice(e *env) {
	j := e.create()
	if _, err := e.Other.Create(e.Context(), e.id, time.Now()); err == nil {
		e.Error("created twice")
	}
	j.Append(entry("a", 1))
	e.must(j.Close())
	if _, err := e.Other.Create(e.Context(), e.id, time.Now()); err == nil {
		e.Error("created again after Close")
	}
	k := e.open()
	e.equal("records", kinds(e.read(k, 0, 10)), []string{"1:a"})
	e.must(k.Close())
}

func createRefusesBadIDs(e *env) {
	for _, id := range []string{"", "a/b", "../x", ".", "a b", "ü", string(make([]byte, 200))} {
		if _, err := e.Store.Create(e.Context(), id, time.Now()); err == nil {
			e.Errorf("created %q", id)
		}
		if _, err := e.Store.Open(e.Context(), id); !errors.Is(err, journal.ErrNotFound) {
			e.Errorf("Open(%q) = %v", id, err)
		}
	}
}

func notFound(e *env) {
	_, openErr := e.Store.Open(e.Context(), e.id)
	_, viewErr := e.Store.View(e.Context(), e.id)
	_, repairErr := e.Store.Repair(e.Context(), e.id)
	_, statErr := e.Store.Stat(e.Context(), e.id)
	for what, err := range map[string]error{
		"Open":    openErr,
		"View":    viewErr,
		"Stat":    statErr,
		"Repair":  repairErr,
		"Archive": e.Store.Archive(e.Context(), e.id),
		"Delete":  e.Store.Delete(e.Context(), e.id),
	} {
		if !errors.Is(err, journal.ErrNotFound) {
			e.Errorf("%s = %v", what, err)
		}
	}
	infos, err := e.Store.List(e.Context())
	e.must(err)
	e.equal("List", len(infos), 0)
}

func (e *env) list() []string {
	e.Helper()
	infos, err := e.Other.List(e.Context())
	e.must(err)
	var all []string
	for _, i := range infos {
		if i.Size < 0 || i.Modified.IsZero() {
			e.Errorf("bad info %+v", i)
		}
		st, err := e.Store.Stat(e.Context(), i.ID)
		e.must(err)
		e.equal("Stat", st, i)
		all = append(all, fmt.Sprint(i.ID, " ", i.Archived))
	}
	slices.Sort(all)
	return all
}

func listKnowsAll(e *env) {
	var want []string
	for i := range 5 {
		id := newID()
		j, err := e.Store.Create(e.Context(), id, time.Now().AddDate(0, 0, -i))
		e.must(err)
		j.Append(entry("a", 1))
		e.must(j.Close())
		want = append(want, id+" false")
		e.sleep(time.Millisecond)
	}
	slices.Sort(want)
	e.equal("List", e.list(), want)
}

func archivePutsAside(e *env) {
	j := e.create()
	j.Append(entry("a", 1))
	e.settle()
	e.must(j.Checkpoint(e.Context(), 1, []byte("state")))
	e.must(j.Close())
	e.must(e.Store.Archive(e.Context(), e.id))
	e.equal("List", e.list(), []string{e.id + " true"})
	e.must(e.Store.Archive(e.Context(), e.id))
	k := e.open()
	e.equal("records", kinds(e.read(k, 0, 10)), []string{"1:a"})
	e.equal("checkpoint", string(k.Recovery().Checkpoint), "state")
	e.must(k.Close())
	e.must(e.Store.Unarchive(e.Context(), e.id))
	e.must(e.Store.Unarchive(e.Context(), e.id))
	e.equal("List", e.list(), []string{e.id + " false"})
	k = e.open()
	e.equal("records", kinds(e.read(k, 0, 10)), []string{"1:a"})
	e.equal("checkpoint", string(k.Recovery().Checkpoint), "state")
	e.must(k.Close())
	e.must(e.Store.Archive(e.Context(), e.id))
	e.must(e.Store.Delete(e.Context(), e.id))
	e.equal("List", len(e.list()), 0)
}

func deleteRemoves(e *env) {
	j := e.create()
	j.Append(entry("a", 1))
	e.must(j.Close())
	e.must(e.Store.Delete(e.Context(), e.id))
	e.equal("List", len(e.list()), 0)
	if _, err := e.Other.Open(e.Context(), e.id); !errors.Is(err, journal.ErrNotFound) {
		e.Errorf("Open = %v", err)
	}
	k := e.create()
	e.durable(k, 0)
	e.must(k.Close())
}

func archiveAndDeleteRefuseOpen(e *env) {
	j := e.create()
	var locked *journal.LockedError
	began := time.Now()
	for what, f := range map[string]func(context.Context, string) error{"Archive": e.Other.Archive, "Unarchive": e.Other.Unarchive, "Delete": e.Other.Delete} {
		if err := f(e.Context(), e.id); !errors.As(err, &locked) {
			e.Errorf("%s = %v", what, err)
		}
	}
	if time.Since(began) != 0 {
		e.Error("waited for the owner")
	}
	j.Append(entry("a", 1))
	e.must(j.Close())
	e.equal("List", e.list(), []string{e.id + " false"})
	e.must(e.Other.Archive(e.Context(), e.id))
}

func viewReadsBesideTheWriter(e *env) {
	j := e.create()
	v, err := e.Other.View(e.Context(), e.id)
	e.must(err)
	e.equal("empty", len(e.read(v, 0, 10)), 0)
	before, err := e.Other.Stat(e.Context(), e.id)
	e.must(err)
	s := j.Open("s")
	for i := range 300 {
		j.Append(entry("a", i))
	}
	s.Write("1.1.0", "message", "op")
	s.Write("1.1.0", "message", "en")
	e.sleep(time.Second)
	records, err := e.Other.Stat(e.Context(), e.id)
	e.must(err)
	s.Write("1.1.0", "message", "ed")
	e.sleep(time.Second)
	items, err := e.Other.Stat(e.Context(), e.id)
	e.must(err)
	if records.Size <= before.Size || items.Size <= records.Size {
		e.Errorf("sizes %d, %d, %d: what was written does not show", before.Size, records.Size, items.Size)
	}
	e.equal("all", len(e.read(v, 0, 1000)), 300)
	e.equal("some", kinds(e.read(v, 100, 2)), []string{"101:a", "102:a"})
	e.equal("earlier ones again", kinds(e.read(v, 2, 1)), []string{"3:a"})
	e.equal("OpenItems", e.openItems(v), []journal.Chunk{chunk("1.1.0", "message", 0, "opened")})
	faults, err := v.Check(e.Context())
	e.must(err)
	e.equal("Check", len(faults), 0)
	j.Append(entry("b", 1))
	e.settle()
	e.equal("new ones", kinds(e.read(v, 300, 10)), []string{"301:b"})
	e.must(v.Close())
	e.must(j.Close())
}

// A follower of a view is given everything once, however often the conversation is
// opened and closed meanwhile.
func viewFollows(e *env) {
	j := e.create()
	j.Append(entry("a", 1), entry("b", 2))
	s := j.Open("s")
	s.Write("1.1.0", "message", "closed")
	j.Append(closing("c", "1.1.0"))
	s.Write("1.1.1", "message", "op")
	e.sleep(time.Second)
	v, err := e.Other.View(e.Context(), e.id)
	e.must(err)
	f := v.Follow(1)
	recs, _ := e.next(f)
	e.equal("records", kinds(recs), []string{"2:b", "3:c"})
	_, chunks := e.next(f)
	e.equal("chunks", chunks, []journal.Chunk{chunk("1.1.1", "message", 0, "op")})
	e.nothing(f)
	s.Write("1.1.1", "message", "en")
	s.Write("1.1.1", "stderr", "!")
	e.sleep(time.Second)
	_, chunks = e.next(f)
	e.equal("new chunks", chunks, []journal.Chunk{chunk("1.1.1", "message", 2, "en"), chunk("1.1.1", "stderr", 4, "!")})
	e.nothing(f)
	s.Write("1.1.1", "message", "never seen")
	e.sleep(time.Second)
	j.Append(closing("d", "1."))
	e.settle()
	recs, _ = e.next(f)
	e.equal("the record that closes it", kinds(recs), []string{"4:d"})
	e.nothing(f)
	e.must(j.Close())
	e.nothing(f)
	e.must(v.Close())
}

func viewFollowsReopened(e *env) {
	j := e.create()
	j.Append(entry("r0", 0))
	e.must(j.Close())
	v, err := e.Other.View(e.Context(), e.id)
	e.must(err)
	f := v.Follow(0)
	for i := range 5 {
		recs, _ := e.next(f)
		e.equal("record", kinds(recs), []string{fmt.Sprintf("%d:r%d", i+1, i)})
		e.nothing(f)
		if i == 2 {
			e.must(e.Store.Archive(e.Context(), e.id))
		}
		j = e.open()
		j.Append(entry(fmt.Sprint("r", i+1), i))
		e.must(j.Close())
		e.sleep(time.Second)
	}
	e.must(v.Close())
}

func viewTail(e *env) {
	j := e.create()
	for i := range 3000 {
		j.Append(entry("a", i))
	}
	e.must(j.Close())
	v, err := e.Other.View(e.Context(), e.id)
	e.must(err)
	for _, limit := range []int{0, 1, 7, 2999, 3000, 5000} {
		recs, err := v.Tail(e.Context(), limit)
		e.must(err)
		want := min(limit, 3000)
		if len(recs) != want {
			e.Errorf("Tail(%d) has %d records", limit, len(recs))
		}
		for i, r := range recs {
			if r.Seq != uint64(3000-want+i+1) {
				e.Fatalf("Tail(%d)[%d] is record %d", limit, i, r.Seq)
			}
		}
	}
	e.must(v.Close())
}

// The last record of a kind is found wherever it stands.
func viewLast(e *env) {
	j := e.create()
	v, err := e.Other.View(e.Context(), e.id)
	e.must(err)
	for i := range longtest.Default(40, 15) {
		j.Append(journal.Entry{Kind: "long", Body: json.RawMessage(`"` + strings.Repeat("x", 1<<16+i*997) + `"`)})
		kind := fmt.Sprintf("seldom_%d_", i)
		j.Append(entry(kind, i), entry("often", i))
		e.settle()
		e.isLast(v, kind, uint64(3*i+2))
		e.isLast(v, "often", uint64(3*i+3))
		if r, ok, err := v.Last(e.Context(), "never"); ok || err != nil {
			e.Fatalf("found %+v, %v", r, err)
		}
	}
	e.isLast(v, "seldom_0_", 2)
	e.must(v.Close())
	e.must(j.Close())
}

func (e *env) isLast(v journal.View, kind string, want uint64) {
	e.Helper()
	r, ok, err := v.Last(e.Context(), kind)
	if !ok || err != nil || r.Seq != want || r.Kind != kind {
		e.Fatalf("the last %s is %d:%s, %v, %v, want %d", kind, r.Seq, r.Kind, ok, err, want)
	}
}

func repairOfTheUndamaged(e *env) {
	j := e.create()
	j.Append(entry("a", 1), entry("b", 2))
	e.must(j.Close())
	rec, err := e.Other.Repair(e.Context(), e.id)
	e.must(err)
	e.equal("Recovery", rec, journal.Recovery{Last: 2})
	k := e.open()
	e.must(k.Close())
}

func ownerIsKnown(e *env) {
	owned := func(want bool) {
		e.Helper()
		owner, is, err := e.Other.Owner(e.Context(), e.id)
		e.must(err)
		if is != want || is && owner.PID != os.Getpid() {
			e.Errorf("Owner = %+v, %v, want %v", owner, is, want)
		}
	}
	if _, _, err := e.Other.Owner(e.Context(), e.id); !errors.Is(err, journal.ErrNotFound) {
		e.Errorf("Owner = %v", err)
	}
	j := e.create()
	owned(true)
	e.must(j.Close())
	owned(false)
	e.open()
	owned(true)
	e.Crash(e.id, journal.CrashKill, rand.New(rand.NewPCG(1, 1)))
	owned(false)
}

func setAsideRemovesRecords(e *env) {
	j := e.create()
	j.Append(entry("a", 1), entry("b", 2), entry("c", 3))
	j.Open("s").Write("1.1.0", "message", "text")
	e.settle()
	e.must(j.Checkpoint(e.Context(), 3, []byte("state")))
	if err := e.Other.SetAside(e.Context(), e.id, 2); err == nil {
		e.Error("set aside while it is open")
	}
	e.must(j.Close())
	e.must(e.Other.SetAside(e.Context(), e.id, 5))
	e.must(e.Other.SetAside(e.Context(), e.id, 2))
	k := e.open()
	e.equal("records", kinds(e.read(k, 0, 10)), []string{"1:a", "2:b"})
	e.equal("open items", len(e.openItems(k)), 0)
	e.equal("Recovery", k.Recovery(), journal.Recovery{Last: 2})
	e.equal("Append", k.Append(entry("d", 3)), 3)
	e.must(k.Close())
}
