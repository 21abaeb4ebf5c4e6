package engine_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/file"
)

// BenchmarkIdleConversations reports the memory of an engine with a thousand
// conversations in a file store that had a turn each and do nothing: released, released
// and followed, and kept open. Goroutine stacks count.
func BenchmarkIdleConversations(b *testing.B) {
	const many = 1000
	for name, how := range map[string]struct {
		idle   time.Duration
		follow bool
		open   int
	}{
		"released":          {time.Millisecond, false, 0},
		"released-followed": {time.Millisecond, true, 0},
		"open":              {-1, false, many},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				e, err := engine.Open(ctx, engine.Config{Store: file.New(b.TempDir()), Model: echo, IdleAfter: how.idle, IdleFollowed: how.idle})
				if err != nil {
					b.Fatal(err)
				}
				empty := heap()
				for range many {
					id, err := e.Create(ctx, p.Settings{})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := engine.RunTurn(ctx, e, id, p.UserTurn{Content: p.Text("hi")}, nil); err != nil {
						b.Fatal(err)
					}
					if how.follow {
						live := make(chan struct{})
						go func() { // ends with ctx
							for range e.Attach(ctx, id, 0, func() { close(live) }) {
							}
						}()
						<-live
					}
				}
				for open, _ := e.Counts(); open != how.open; open, _ = e.Counts() {
					runtime.Gosched()
				}
				b.ReportMetric(float64(heap()-empty)/many/1024, "KiB/conversation")
				cancel()
				if err := e.Shutdown(context.WithoutCancel(ctx)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// heap is what the heap and the stacks take now.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
