package file_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

var benchBody = json.RawMessage(`{"text":"` + strings.Repeat("0123456789", 40) + `"}`)

func benchJournal(b *testing.B, s journal.Store) journal.Journal {
	b.Helper()
	j, err := s.Create(b.Context(), sampleID, time.Now())
	must(b, err)
	b.Cleanup(func() { j.Close() })
	return j
}

func stores(b *testing.B, f func(*testing.B, journal.Store)) {
	b.Run("memory", func(b *testing.B) { f(b, journal.NewMemoryStore(journal.MemoryOptions{})) })
	b.Run("file", func(b *testing.B) { f(b, file.New(b.TempDir(), file.Options{})) })
}

func await(b *testing.B, j journal.Journal, n uint64) {
	b.Helper()
	for {
		d, err := j.Durable()
		must(b, err)
		if d >= n {
			return
		}
		<-j.Notify()
	}
}

// BenchmarkAppend is what the owner pays for a record.
func BenchmarkAppend(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		j := benchJournal(b, s)
		b.ReportAllocs()
		b.SetBytes(int64(len(benchBody)))
		var last uint64
		for b.Loop() {
			last = j.Append(journal.Entry{Kind: "bench", Body: benchBody})
		}
		b.StopTimer()
		await(b, j, last)
	})
}

// BenchmarkAppendSync waits for each record to be durable.
func BenchmarkAppendSync(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		j := benchJournal(b, s)
		for b.Loop() {
			await(b, j, j.Append(journal.Entry{Kind: "bench", Body: benchBody}))
		}
	})
}

// BenchmarkFollow100 is a record on its way to 100 readers.
func BenchmarkFollow100(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		j := benchJournal(b, s)
		var readers sync.WaitGroup
		var seen sync.WaitGroup
		for range 100 {
			readers.Go(func() {
				r := j.Follow(0)
				for {
					recs, _, err := r.Next(b.Context())
					if err != nil {
						return
					}
					seen.Add(-len(recs))
				}
			})
		}
		for b.Loop() {
			seen.Add(100)
			j.Append(journal.Entry{Kind: "bench", Body: benchBody})
			seen.Wait()
		}
		must(b, j.Close())
		readers.Wait()
	})
}

// BenchmarkDelta is one piece of text from Scope.Write to Reader.Next.
func BenchmarkDelta(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		j := benchJournal(b, s)
		r := j.Follow(0)
		sc := j.Open("s")
		b.ReportAllocs()
		for b.Loop() {
			sc.Write("1.1.0", "message", "some words ")
			if _, _, err := r.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite is what a worker pays for a piece of text that no caller waits for.
func BenchmarkWrite(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		sc := benchJournal(b, s).Open("s")
		b.ReportAllocs()
		for b.Loop() {
			sc.Write("1.1.0", "message", "some words ")
		}
	})
}

// BenchmarkOpen100MB opens a conversation of 100 MB.
func BenchmarkOpen100MB(b *testing.B) {
	s := file.New(b.TempDir(), file.Options{})
	j := benchJournal(b, s)
	const records = 200_000
	for i := range records {
		last := j.Append(journal.Entry{Turn: i / 100, Kind: "tool_output", Body: benchBody})
		if i%1000 == 0 {
			await(b, j, last)
		}
	}
	await(b, j, records)
	must(b, j.Close())
	open := func(b *testing.B) {
		for b.Loop() {
			j, err := s.Open(b.Context(), sampleID)
			must(b, err)
			b.StopTimer()
			if j.Recovery().Last != records {
				b.Fatalf("Recovery = %+v", j.Recovery())
			}
			must(b, j.Close())
			b.StartTimer()
		}
	}
	infos, err := s.List(b.Context())
	must(b, err)
	b.Logf("%d records, %d bytes", records, infos[0].Size)
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(infos[0].Size)
		open(b)
	})
	j, err = s.Open(b.Context(), sampleID)
	must(b, err)
	must(b, j.Checkpoint(b.Context(), records-100, []byte("state")))
	must(b, j.Close())
	b.Run("checkpoint", open)
}

// BenchmarkView100MB is what readers of a conversation of 100 MB pay: for a look
// whether there is something new, and for the last record of a kind that there is
// none of, without and with a checkpoint.
func BenchmarkView100MB(b *testing.B) {
	s := file.New(b.TempDir(), file.Options{})
	j := benchJournal(b, s)
	const records = 200_000
	for i := range records {
		last := j.Append(journal.Entry{Turn: i / 100, Kind: "tool_output", Body: benchBody})
		if i%1000 == 0 {
			await(b, j, last)
		}
	}
	await(b, j, records)
	v, err := s.View(b.Context(), sampleID)
	must(b, err)
	defer v.Close()
	b.Run("poll", func(b *testing.B) {
		f := v.Follow(0)
		for n := 0; n < records; {
			recs, _, err := f.Next(b.Context())
			must(b, err)
			n += len(recs)
		}
		for b.Loop() {
			b.StopTimer()
			ended, cancel := context.WithCancel(b.Context())
			time.AfterFunc(0, cancel)
			b.StartTimer()
			f.Next(ended)
			cancel()
		}
	})
	last := func(b *testing.B) {
		for b.Loop() {
			if _, ok, err := v.Last(b.Context(), "renamed"); ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	}
	b.Run("last", last)
	must(b, j.Checkpoint(b.Context(), records-100, []byte("state")))
	b.Run("last with checkpoint", last)
	b.Run("tail", func(b *testing.B) {
		for b.Loop() {
			_, err := v.Tail(b.Context(), 64)
			must(b, err)
		}
	})
}

// BenchmarkStream is a piece of text that reaches the file too: a record closes
// the item after a while, and the next one begins.
func BenchmarkStream(b *testing.B) {
	stores(b, func(b *testing.B, s journal.Store) {
		j := benchJournal(b, s)
		b.ReportAllocs()
		b.SetBytes(int64(len("some words ")))
		n := 0
		sc := j.Open("s")
		for b.Loop() {
			n++
			item := "1.1." + strconv.Itoa(n/20_000)
			sc.Write(item, "message", "some words ")
			if n%20_000 == 19_999 {
				j.Append(journal.Entry{Kind: "bench", Closes: item})
			}
		}
	})
}
