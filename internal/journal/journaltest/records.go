package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

func appendNumbersWithoutGaps(e *env) {
	e.syncTime = time.Millisecond
	j := e.create()
	var wg sync.WaitGroup
	var mu sync.Mutex
	lasts := make(map[uint64]string)
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				kind := fmt.Sprintf("w%d-%d", w, i)
				last := j.Append(entry(kind+"a", w), entry(kind+"b", w))
				mu.Lock()
				lasts[last] = kind
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	e.settle()
	e.durable(j, 200)
	recs := e.read(j, 0, 1000)
	if len(recs) != 200 || len(lasts) != 100 {
		e.Fatalf("%d records by %d appends, want 200 by 100", len(recs), len(lasts))
	}
	for i, r := range recs {
		if r.Seq != uint64(i+1) {
			e.Fatalf("record %d has number %d", i+1, r.Seq)
		}
		if i%2 == 1 && (recs[i-1].Kind != lasts[r.Seq]+"a" || r.Kind != lasts[r.Seq]+"b") {
			e.Errorf("records %d and %d are %s and %s, want those of %s", i, i+1, recs[i-1].Kind, r.Kind, lasts[r.Seq])
		}
	}
	e.equal("Append of nothing", j.Append(), 200)
	e.must(j.Close())
}

func recordsReadBackAsGiven(e *env) {
	j := e.create()
	body := `{"text":"a \"quoted\" line\nand <tags> & ünïcödé \u2028","list":[1,2.50,null]}`
	at := time.Now().UTC().Truncate(time.Microsecond)
	j.Append(journal.Entry{Turn: 7, Kind: `odd "kind" ü` + "\x01", Body: json.RawMessage(body), Closes: "no.such"})
	j.Append(journal.Entry{Kind: "empty"}, entry("big", 3))
	e.settle()
	want := []journal.Record{
		{Seq: 1, Time: at, Turn: 7, Kind: `odd "kind" ü` + "\x01", Body: json.RawMessage(body)},
		{Seq: 2, Time: at, Kind: "empty", Body: json.RawMessage("null")},
		{Seq: 3, Time: at, Turn: 3, Kind: "big", Body: json.RawMessage(`{"n":3}`)},
	}
	e.equal("while open", e.read(j, 0, 10), want)
	e.equal("after 1, one", e.read(j, 1, 1), want[1:2])
	e.equal("after the last", e.read(j, 3, 10), want[:0])
	e.equal("far after the last", e.read(j, 30, 10), want[:0])
	e.equal("limit 0", e.read(j, 0, 0), want[:0])
	e.must(j.Close())
	e.equal("after Close", e.read(j, 0, 10), want)
	k := e.open()
	e.equal("reopened", e.read(k, 0, 10), want)
	e.must(k.Close())
}

func bodiesBecomeOneLine(e *env) {
	j := e.create()
	j.Append(journal.Entry{Kind: "indented", Body: json.RawMessage("{\n  \"a\": [\n 1 ]\n}")})
	j.Append(journal.Entry{Kind: "not JSON", Body: json.RawMessage("oh\nno\x00")})
	e.must(j.Close())
	k := e.open()
	recs := e.read(k, 0, 10)
	e.equal("kinds", kinds(recs), []string{"1:indented", "2:not JSON"})
	e.equal("indented", string(recs[0].Body), `{"a":[1]}`)
	if !json.Valid(recs[1].Body) || !strings.Contains(string(recs[1].Body), "oh") {
		e.Errorf("what is not JSON became %s", recs[1].Body)
	}
	e.must(k.Close())
}

func visibleOnlyWhenDurable(e *env) {
	e.syncTime = time.Second
	e.settle()
	j := e.create()
	r := j.Follow(0)
	e.equal("Append", j.Append(entry("a", 1), entry("b", 2)), 2)
	e.sleep(900 * time.Millisecond)
	e.durable(j, 0)
	e.equal("Read", len(e.read(j, 0, 10)), 0)
	e.nothing(r)
	select {
	case <-j.Notify():
		e.Error("notified before anything was durable")
	default:
	}

	e.sleep(200 * time.Millisecond)
	e.durable(j, 2)
	e.equal("Read", kinds(e.read(j, 0, 10)), []string{"1:a", "2:b"})
	recs, _ := e.next(r)
	e.equal("Next", kinds(recs), []string{"1:a", "2:b"})
	select {
	case <-j.Notify():
	default:
		e.Error("not notified")
	}
	e.must(j.Close())
}

// In the bubble, time passes only when everybody waits: what takes no time has
// not waited for the disk.
func slowSyncBlocksNothing(e *env) {
	j := e.create()
	j.Append(entry("first", 1))
	e.settle()
	e.syncTime = time.Hour
	j.Append(entry("slow", 2))
	e.sleep(time.Second)

	began := time.Now()
	j.Append(entry("next", 3), closing("last", "2."))
	s := j.Open("s")
	if !s.Write("3.1.0", "message", "text") {
		e.Error("Write refused")
	}
	e.durable(j, 1)
	recs, _ := e.next(j.Follow(0))
	e.equal("Next", kinds(recs), []string{"1:first"})
	want := []journal.Chunk{{Item: "3.1.0", Tag: "message", Text: "text"}}
	e.equal("OpenItems", e.openItems(j), want)
	s.Seal()
	if d := time.Since(began); d != 0 {
		e.Errorf("waited %v for the disk", d)
	}
	e.settleText()
	_, chunks := e.next(j.Follow(1))
	e.equal("Next", chunks, want)
	e.syncTime = 0
	e.must(j.Close())
	e.durable(j, 4)
}

func batchIsVisibleAsOne(e *env) {
	e.syncTime = 10 * time.Millisecond
	j := e.create()
	began := time.Now()
	j.Append(entry("a", 0))
	e.sleep(time.Millisecond)
	for i := range 50 {
		j.Append(entry("b", i), entry("c", i), entry("d", i))
	}
	r := j.Follow(0)
	var all []journal.Record
	for len(all) < 151 {
		recs, _, err := r.Next(e.Context())
		e.must(err)
		all = append(all, recs...)
		if n, _ := j.Durable(); (n-1)%3 != 0 {
			e.Errorf("%d records are visible: a part of what one Append gave", n)
		}
	}
	if d := time.Since(began); d > 50*time.Millisecond {
		e.Errorf("151 records took %v: not synced in groups", d)
	}
	e.must(j.Close())
}

// What ended a context is what those who waited are told, not only that it ended.
func nextEndsWithContext(e *env) {
	j := e.create()
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(e.Context())
	defer cancel(nil)
	done := make(chan error)
	go func() {
		_, _, err := j.Follow(0).Next(ctx)
		done <- err
	}()
	e.sleep(time.Second)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		e.Errorf("Next = %v", err)
	}
	j.Append(entry("a", 1))
	e.settle()
	if _, _, err := j.Follow(0).Next(ctx); !errors.Is(err, reason) {
		e.Errorf("Next with an ended context = %v", err)
	}
	e.must(j.Close())
}

func readerBeyondTheEndWaits(e *env) {
	j := e.create()
	r := j.Follow(2)
	j.Append(entry("a", 1), entry("b", 2))
	e.settle()
	e.nothing(r)
	j.Append(entry("c", 3))
	e.settle()
	recs, _ := e.next(r)
	e.equal("Next", kinds(recs), []string{"3:c"})
	e.must(j.Close())
}
