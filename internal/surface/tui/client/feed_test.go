package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// A tap is a subscription that the test fills.
type tap chan happened

func (t tap) events(ctx context.Context) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		for {
			select {
			case h := <-t:
				if !yield(h.event, h.err) || h.err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func followed(t *testing.T) (tap, *Feed) {
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	in := make(tap)
	return in, Follow(ctx, in.events(ctx), stop)
}

func delta(index int, offset int64, text string) p.Event {
	return p.Event{Body: &p.Delta{Item: p.ItemID{Turn: 1, Response: 1, Index: index}, Kind: p.DeltaMessage, Offset: offset, Text: text}}
}

func described(b Batch) string {
	var words []string
	for _, e := range b.Events {
		switch body := e.Body.(type) {
		case *p.Delta:
			words = append(words, fmt.Sprintf("%s@%d:%s", body.Item, body.Offset, body.Text))
		default:
			words = append(words, fmt.Sprintf("%d", e.Seq))
		}
	}
	if b.Err != nil {
		words = append(words, "error:"+b.Err.Error())
	}
	return strings.Join(words, " ")
}

func TestFeedPutsDeltasTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, f := followed(t)
		shared := delta(0, 0, "a")
		for _, e := range []p.Event{
			shared, delta(0, 1, "b"), delta(0, 2, "c"), // one
			delta(1, 0, "x"),                     // another item
			delta(0, 3, "d"), delta(0, 9, "gap"), // a gap stays one
			{Seq: 7, Body: &p.Notice{}},
			delta(0, 12, "e"), delta(0, 13, "f"),
		} {
			in <- happened{event: e}
		}
		synctest.Wait()
		want := "1.1.0@0:abc 1.1.1@0:x 1.1.0@3:d 1.1.0@9:gap 7 1.1.0@12:ef"
		if d := cmp.Diff(want, described(f.Next().(Batch))); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got := shared.Body.(*p.Delta).Text; got != "a" {
			t.Errorf("the engine's own event was changed to %q", got)
		}
	})
}

// 20,000 deltas a second become at most one message for each frame, and all
// of the text arrives.
func TestFeedGivesOneBatchForEachFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, f := followed(t)
		const n = 20_000
		go func() {
			for i := range n {
				in <- happened{event: delta(0, int64(i), "x")}
				if i%20 == 19 {
					time.Sleep(time.Millisecond)
				}
			}
			in <- happened{err: errors.New("end")}
		}()
		began := time.Now()
		batches, text := 0, 0
		for {
			b := f.Next().(Batch)
			batches++
			for _, e := range b.Events {
				text += len(e.Body.(*p.Delta).Text)
			}
			if b.Err != nil {
				break
			}
		}
		if most := int(time.Since(began)/FrameTime) + 2; batches > most || text != n {
			t.Errorf("%d batches with %d bytes in %v, want at most %d with %d", batches, text, time.Since(began), most, n)
		}
	})
}

// The first event after a silence is not held back.
func TestFeedIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, f := followed(t)
		for range 3 {
			time.Sleep(time.Second)
			began := time.Now()
			in <- happened{event: p.Event{Seq: 1, Body: &p.Notice{}}}
			if f.Next(); time.Since(began) != 0 {
				t.Errorf("it took %v", time.Since(began))
			}
		}
	})
}

func TestFeedIsBounded(t *testing.T) {
	for name, text := range map[string]string{"events": "", "bytes": strings.Repeat("x", 1000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, f := followed(t)
				taken := 0
				go func() {
					for i := range 100_000 {
						e := p.Event{Seq: p.Seq(i + 1), Body: &p.Notice{}}
						if text != "" {
							e = delta(i, 0, text)
						}
						select {
						case in <- happened{event: e}:
							taken++
						case <-t.Context().Done():
							return
						}
					}
				}()
				synctest.Wait()
				if taken > batchEvents+3 {
					t.Errorf("%d were read and nobody took them", taken)
				}
				if b := f.Next().(Batch); b.size > batchBytes+2000 || len(b.Events) > batchEvents {
					t.Errorf("a batch of %d events, %d bytes", len(b.Events), b.size)
				}
			})
		})
	}
}

func TestFeedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, f := followed(t)
		in <- happened{event: delta(0, 0, "a")}
		in <- happened{err: errors.New("no more")}
		synctest.Wait()
		if d := cmp.Diff("1.1.0@0:a error:no more", described(f.Next().(Batch))); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		f.Stop()
		if msg := f.Next(); msg != nil {
			t.Errorf("after the end: %v", msg)
		}
	})
}

func TestFeedPassesAPanicOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f := Follow(ctx, func(func(p.Event, error) bool) { panic("ouch") }, stop)
		var is *PanicError
		if b := f.Next().(Batch); !errors.As(b.Err, &is) || !strings.Contains(b.Err.Error(), "ouch") {
			t.Errorf("got %v", b.Err)
		}
		stop()
	})
}

// BenchmarkBatch puts the deltas of one frame together, at 20,000 a second.
func BenchmarkBatch(b *testing.B) {
	var deltas []happened
	for i := range 20_000 * int(FrameTime) / int(time.Second) {
		deltas = append(deltas, happened{event: delta(0, int64(5*i), "word ")})
	}
	b.ReportAllocs()
	for b.Loop() {
		var next Batch
		for _, d := range deltas {
			next.add(d)
		}
		if next = next.closed(); len(next.Events) != 1 {
			b.Fatal(len(next.Events))
		}
	}
}
