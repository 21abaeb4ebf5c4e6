package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

var errDisk = errors.New("no space left on the simulated disk")

func failedSyncShowsUnsaved(e *env) {
	j := e.create()
	j.Append(entry("saved", 1))
	e.settle()
	<-j.Notify()
	e.syncErr, e.syncTime = errDisk, time.Second
	s := j.Open("s")
	s.Write("1.1.0", "message", "text")
	r := j.Follow(1)
	e.settleText()
	e.next(r)
	j.Append(entry("lost", 2))
	j.Append(closing("lost too", "1.1.0"))
	e.nothing(r)
	e.settle()

	select {
	case <-j.Notify():
	default:
		e.Error("not notified")
	}
	if n, err := j.Durable(); n != 3 || !errors.Is(err, errDisk) {
		e.Errorf("Durable = %d, %v", n, err)
	}
	recs, _ := e.next(r)
	e.equal("visible", kinds(recs), []string{"2:lost", "3:lost too"})
	began := time.Now()
	e.equal("Append", j.Append(entry("later", 4)), 4)
	more, _ := e.next(r)
	e.equal("visible at once", kinds(more), []string{"4:later"})
	if d := time.Since(began); d != 0 {
		e.Errorf("waited %v", d)
	}
	for _, rec := range append(e.read(j, 1, 10), append(recs, more...)...) {
		if !rec.Unsaved {
			e.Errorf("record %d is not marked", rec.Seq)
		}
	}
	if e.read(j, 0, 1)[0].Unsaved {
		e.Error("record 1 is marked")
	}
	if !s.Write("1.1.1", "message", "still works") {
		e.Error("Write refused")
	}
	if err := j.Close(); !errors.Is(err, errDisk) {
		e.Errorf("Close = %v", err)
	}
}

func failedJournalKeepsWhatWasSaved(e *env) {
	j := e.create()
	j.Append(entry("saved", 1), entry("saved too", 2))
	e.settle()
	e.syncErr = errDisk
	j.Append(entry("lost", 3))
	e.settle()
	j.Close()
	e.syncErr = nil
	k := e.open()
	e.equal("reopened", kinds(e.read(k, 0, 10)), []string{"1:saved", "2:saved too"})
	e.equal("Append", k.Append(entry("again", 3)), 3)
	e.must(k.Close())
	e.durable(k, 3)
}

func closeMakesDurable(e *env) {
	e.syncTime = time.Second
	j := e.create()
	for i := range 10 {
		j.Append(entry("a", i))
		e.sleep(time.Millisecond)
	}
	e.must(j.Close())
	e.durable(j, 10)
	e.must(j.Close())
	k := e.open()
	e.equal("Last", k.Recovery().Last, 10)
	e.must(k.Close())
}

func readersFinishAfterClose(e *env) {
	j := e.create()
	for i := range 1000 {
		j.Append(entry("a", i))
	}
	e.settle()
	late := j.Follow(0)
	waiting := j.Follow(1000)
	ended := make(chan error)
	go func() {
		_, chunks, err := waiting.Next(e.Context())
		if err == nil && len(chunks) == 1 {
			_, _, err = waiting.Next(e.Context())
		}
		ended <- err
	}()
	e.sleep(time.Second)
	j.Open("s").Write("1.1.0", "message", "left open")
	e.must(j.Close())
	if err := <-ended; !errors.Is(err, journal.ErrClosed) {
		e.Errorf("a reader that waited: %v", err)
	}
	var n int
	var texts []string
	for {
		recs, chunks, err := late.Next(e.Context())
		if errors.Is(err, journal.ErrClosed) {
			break
		}
		e.must(err)
		n += len(recs)
		for _, c := range chunks {
			texts = append(texts, c.Text)
		}
	}
	e.equal("records", n, 1000)
	e.equal("chunks", texts, []string{"left open"})
}

func closedTakesNothing(e *env) {
	j := e.create()
	s := j.Open("s")
	j.Append(entry("a", 1))
	e.must(j.Close())
	e.equal("Append", j.Append(entry("b", 2)), 1)
	if s.Write("1.1.0", "message", "late") || j.Open("o").Write("1.2.0", "message", "late") {
		e.Error("wrote to a closed journal")
	}
	if err := j.Checkpoint(e.Context(), 1, nil); !errors.Is(err, journal.ErrClosed) {
		e.Errorf("Checkpoint = %v", err)
	}
	k := e.open()
	e.equal("reopened", kinds(e.read(k, 0, 10)), []string{"1:a"})
	e.must(k.Close())
}

func reopenContinues(e *env) {
	j := e.create()
	e.equal("Recovery", j.Recovery(), journal.Recovery{})
	for i := range 5 {
		j.Append(entry(fmt.Sprint("round ", i), i))
		e.must(j.Close())
		j = e.open()
		e.equal("Recovery", j.Recovery(), journal.Recovery{Last: uint64(i + 1)})
		e.durable(j, uint64(i+1))
	}
	e.equal("records", kinds(e.read(j, 0, 10)), []string{"1:round 0", "2:round 1", "3:round 2", "4:round 3", "5:round 4"})
	recs, _ := e.next(j.Follow(3))
	e.equal("follow", kinds(recs), []string{"4:round 3", "5:round 4"})
	e.must(j.Close())
}

func openItemsSurviveReopen(e *env) {
	j := e.create()
	s, o := j.Open("s"), j.Open("o")
	s.Write("1.1.0", "message", "closed")
	s.Write("1.1.1", "message", "öpen ")
	o.Write("1.2.0", "stdout", "out")
	j.Append(closing("one", "1.1.0"))
	e.sleep(time.Second)
	o.Write("1.2.0", "stderr", "err")
	s.Write("1.1.1", "message", "still")
	e.must(j.Close())

	k := e.open()
	want := []journal.Chunk{
		chunk("1.1.1", "message", 0, "öpen still"),
		chunk("1.2.0", "stdout", 0, "out"),
		chunk("1.2.0", "stderr", 3, "err"),
	}
	e.equal("OpenItems", e.openItems(k), want)
	r := k.Follow(1)
	_, chunks := e.next(r)
	e.equal("Next", chunks, want)
	if !k.Open("n").Write("1.2.0", "stdout", " more") {
		e.Error("cannot go on")
	}
	e.settleText()
	_, chunks = e.next(r)
	e.equal("Next", chunks, []journal.Chunk{chunk("1.2.0", "stdout", 6, " more")})
	k.Append(closing("crashed", "1."))
	e.must(k.Close())
	j = e.open()
	e.equal("after they were closed", len(e.openItems(j)), 0)
	e.must(j.Close())
}

// Whatever happens, what a reader has seen of the records is there afterwards,
// and what is there is a prefix of what was appended. A power cut may also leave
// a hole before records that no reader had seen.
func crashKeepsWhatWasSeen(e *env) {
	r := rand.New(rand.NewPCG(1, 2))
	e.syncTime = 10 * time.Millisecond
	j := e.create()
	var appended []string
	for round := range 25 {
		for range r.IntN(10) {
			n := j.Append(entry(fmt.Sprint("r", round), round), entry("x", round))
			appended = append(appended[:n-2], fmt.Sprint("r", round), "x")
			e.sleep(time.Duration(r.IntN(8)) * time.Millisecond)
		}
		seen, err := j.Durable()
		e.must(err)
		mode := journal.CrashMode(round % 2)
		e.Crash(e.id, mode, r)
		j = e.open()
		last := j.Recovery().Last
		if last < seen || last > uint64(len(appended)) {
			e.Fatalf("round %d: %d records after a crash, %d were seen, %d appended", round, last, seen, len(appended))
		}
		appended = appended[:last]
		for i, rec := range e.read(j, 0, 1000) {
			if mode == journal.CrashPower && uint64(i) >= seen && rec.Kind == "damaged" {
				appended[i] = rec.Kind
			}
			if rec.Seq != uint64(i+1) || rec.Kind != appended[i] || rec.Unsaved {
				e.Fatalf("round %d: record %d is %+v, want %s", round, i+1, rec, appended[i])
			}
		}
	}
	e.must(j.Close())
}

// What one Append gave is there whole after a crash, or not at all.
func crashLeavesNoPartOfABatch(e *env) {
	r := rand.New(rand.NewPCG(3, 4))
	j := e.create()
	e.syncTime = 10 * time.Millisecond
	for round := range 60 {
		for range 1 + r.IntN(3) {
			if r.IntN(3) == 0 {
				j.Open(fmt.Sprint(round)).Write(fmt.Sprint(round, ".1.0"), "message", "text")
			}
			j.Append(entry("first", round), entry("middle", round), entry("last", round))
			e.sleep(time.Duration(r.IntN(8)) * time.Millisecond)
		}
		e.Crash(e.id, journal.CrashMode(round%2), r)
		j = e.open()
		recs := e.read(j, 0, 1000)
		if len(recs)%3 != 0 {
			e.Fatalf("round %d: %d records: a part of a batch is left", round, len(recs))
		}
		for i := 0; i < len(recs); i += 3 {
			switch kinds := recs[i].Kind + " " + recs[i+1].Kind + " " + recs[i+2].Kind; kinds {
			case "first middle last", "damaged damaged damaged":
			default:
				e.Fatalf("round %d: a part of a batch is left: %s", round, kinds)
			}
		}
	}
	e.must(j.Close())
}

// What was written to an open item is there after a power cut a second later.
func powerCutKeepsWhatIsASecondOld(e *env) {
	r := rand.New(rand.NewPCG(5, 6))
	e.syncTime = 100 * time.Millisecond
	j := e.create()
	j.Append(entry("a", 1))
	e.settle()
	var want string
	for round := range 20 {
		type moment struct {
			at  time.Time
			len int
		}
		written := []moment{{time.Now(), len(want)}}
		s := j.Open("s")
		for i := range 1 + r.IntN(200) {
			text := fmt.Sprint(round, "-", i, " ")
			s.Write("1.1.0", "message", text)
			want += text
			written = append(written, moment{time.Now(), len(want)})
			e.sleep(time.Duration(r.IntN(40)) * time.Millisecond)
		}
		e.sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		safe := 0
		for _, m := range written {
			if time.Since(m.at) >= time.Second {
				safe = m.len
			}
		}
		e.Crash(e.id, journal.CrashPower, r)
		j = e.open()
		var got strings.Builder
		for _, c := range e.openItems(j) {
			got.WriteString(c.Text)
		}
		if !strings.HasPrefix(got.String(), want[:safe]) {
			e.Fatalf("round %d: %d bytes after a power cut, %d were safe, %d written", round, got.Len(), safe, len(want))
		}
		if !strings.HasPrefix(want, got.String()) { // a hole in what was not synced
			j.Append(closing("closed", "1."))
			e.settle()
			got.Reset()
		}
		want = got.String()
	}
	e.must(j.Close())
}

func killKeepsProgress(e *env) {
	r := rand.New(rand.NewPCG(3, 4))
	e.syncTime = 10 * time.Second // progress does not wait for a slow sync
	var want string
	j := e.create()
	j.Append(entry("a", 1))
	s := j.Open("s")
	for round := range 12 {
		var safe string
		for i := range r.IntN(40) {
			text := strings.Repeat(fmt.Sprint(round, "-", i, " "), 1+r.IntN(3)*r.IntN(300))
			s.Write("1.1.0", "message", text)
			want += text
			e.sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		safe = want
		e.sleep(100 * time.Millisecond)
		s.Write("1.1.0", "message", "too late?")
		want += "too late?"
		e.Crash(e.id, journal.CrashKill, r)
		j = e.open()
		var got strings.Builder
		for _, c := range e.openItems(j) {
			got.WriteString(c.Text)
		}
		if !strings.HasPrefix(got.String(), safe) || !strings.HasPrefix(want, got.String()) {
			e.Fatalf("round %d: %d bytes after a kill, %d were safe, %d written", round, got.Len(), len(safe), len(want))
		}
		want = got.String()
		s = j.Open("s")
	}
	e.must(j.Close())
}

func deadJournalIsDead(e *env) {
	e.syncTime = time.Second
	j := e.create()
	s := j.Open("s")
	j.Append(entry("a", 1))
	e.settle()
	waiting := make(chan error)
	go func() {
		_, _, err := j.Follow(1).Next(e.Context())
		waiting <- err
	}()
	e.sleep(time.Second)
	e.Crash(e.id, journal.CrashKill, rand.New(rand.NewPCG(5, 6)))
	if err := <-waiting; !errors.Is(err, journal.ErrClosed) {
		e.Errorf("a reader that waited: %v", err)
	}
	k := e.open()
	e.equal("Append", j.Append(entry("b", 2)), 1)
	if s.Write("1.1.0", "message", "late") {
		e.Error("wrote to a dead journal")
	}
	if _, _, err := j.Follow(0).Next(e.Context()); !errors.Is(err, journal.ErrClosed) {
		e.Errorf("a new reader: %v", err)
	}
	if _, err := j.Durable(); !errors.Is(err, journal.ErrClosed) {
		e.Errorf("Durable = %v", err)
	}
	j.Close()
	e.settle()
	e.equal("the next journal", kinds(e.read(k, 0, 10)), []string{"1:a"})
	if _, err := e.Other.Open(expired(e), e.id); err == nil {
		e.Error("closing the dead journal took the lock from the living")
	}
	e.must(k.Close())
}

func expired(e *env) context.Context {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	return ctx
}

func secondWriterWaits(e *env) {
	j := e.create()
	j.Append(entry("a", 1))
	time.AfterFunc(2*time.Second, func() { j.Close() })
	began := time.Now()
	k := e.open()
	if d := time.Since(began); d < 2*time.Second || d > 2100*time.Millisecond {
		e.Errorf("waited %v for an owner that took 2s to end", d)
	}
	e.equal("records", kinds(e.read(k, 0, 10)), []string{"1:a"})
	e.must(k.Close())
}

func secondWriterIsRefused(e *env) {
	j := e.create()
	began := time.Now()
	_, err := e.Other.Open(e.Context(), e.id)
	var locked *journal.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		e.Errorf("Open = %v", err)
	}
	if d := time.Since(began); d < 3*time.Second || d > 3100*time.Millisecond {
		e.Errorf("waited %v, want 3s", d)
	}
	j.Append(entry("a", 1))
	e.must(j.Close())
	k := e.open()
	e.must(k.Close())
}

func secondWriterGivesUp(e *env) {
	j := e.create()
	reason := errors.New("waited for long enough")
	ctx, cancel := context.WithTimeoutCause(e.Context(), time.Second, reason)
	defer cancel()
	if _, err := e.Other.Open(ctx, e.id); !errors.Is(err, reason) {
		e.Errorf("Open = %v", err)
	}
	e.must(j.Close())
}
