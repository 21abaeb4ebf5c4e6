package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// BenchmarkAppend is the time from Append to durable, one record after the other.
func BenchmarkAppend(b *testing.B) {
	stores := map[string]func(b *testing.B) journal.Store{
		"files": func(b *testing.B) journal.Store { return file.New(b.TempDir(), file.Options{}) },
	}
	for name, o := range map[string]struct {
		memory, always bool
	}{"nats/memory": {true, false}, "nats/file": {false, false}, "nats/file,always": {false, true}} {
		stores[name] = func(b *testing.B) journal.Store {
			s := listen(b, &server.Options{SyncAlways: o.always})
			st := nats.New(b.Context(), nats.Options{URL: s.ClientURL(), Memory: o.memory, Lease: time.Minute})
			b.Cleanup(func() { st.Close() })
			return st
		}
	}
	for name, open := range stores {
		b.Run(name, func(b *testing.B) {
			j, err := open(b).Create(b.Context(), fmt.Sprint("c", time.Now().UnixNano()), time.Now())
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := j.Append(entry("a"))
				for d, err := j.Durable(); d < n; d, err = j.Durable() {
					if err != nil {
						b.Fatal(err)
					}
					<-j.Notify()
				}
			}
			j.Close()
		})
	}
}

// BenchmarkIdle says what conversations that nobody has open cost: make 10,000 with
// -benchtime 10000x. List is measured once, at the end.
func BenchmarkIdle(b *testing.B) {
	s := listen(b, &server.Options{})
	st := nats.New(b.Context(), nats.Options{URL: s.ClientURL(), Lease: time.Minute})
	b.Cleanup(func() { st.Close() })
	n := 0
	for b.Loop() {
		n++
		j, err := st.Create(b.Context(), fmt.Sprint("c", n), time.Now())
		if err != nil {
			b.Fatal(err)
		}
		for range 10 {
			j.Append(entry("event"))
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	infos, err := st.List(b.Context())
	if err != nil || len(infos) != n {
		b.Fatalf("%d conversations, %v, want %d", len(infos), err, n)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/list")
	v, err := s.Varz(nil)
	if err == nil {
		b.ReportMetric(float64(v.Mem>>20), "MiB-process")
	}
	if js, err := s.Jsz(&server.JSzOptions{}); err == nil {
		b.ReportMetric(float64(js.Messages)/float64(n), "messages/conversation")
		b.ReportMetric(float64(js.Bytes)/float64(n), "bytes/conversation")
	}
}
