package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	p "github.com/fermata-agent/fermata/protocol"
)

// A talker is a model that says what it is told.
type talker func(ctx context.Context, sink model.Sink) error

func (f talker) Stream(ctx context.Context, _ model.Prompt, sink model.Sink) (model.End, error) {
	return model.End{}, f(ctx, sink)
}

func benchEngine(b *testing.B, store journal.Store, f talker) (*engine.Local, p.ConversationID) {
	b.Helper()
	e := enginetest.Open(b, store, engine.Config{Model: native.Model(f)})
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Shutdown(ctx)
	})
	id, err := e.Create(b.Context(), p.Settings{Cwd: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	return e, id
}

func fileStore(b *testing.B) journal.Store {
	return file.New(b.TempDir(), file.Options{})
}

// One text delta from the worker to a subscriber who waits for it.
func BenchmarkDeltaToSubscriber(b *testing.B) {
	said := make(chan struct{})
	e, id := benchEngine(b, fileStore(b), func(ctx context.Context, sink model.Sink) error {
		for {
			select {
			case <-said:
				sink.Delta(0, p.DeltaMessage, "word ")
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	rc, err := e.Submit(b.Context(), id, p.UserTurn{Content: p.Text("go")})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	got := make(chan struct{})
	go func() {
		for ev, err := range e.Subscribe(ctx, id, rc.Seq) {
			if err != nil {
				return
			}
			if _, ok := ev.Body.(*p.Delta); ok {
				select {
				case got <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		said <- struct{}{}
		<-got
	}
}

// A turn that says one thing, on files: what the engine adds to a model.
func BenchmarkTurn(b *testing.B) {
	for _, s := range []struct {
		name  string
		store journal.Store
	}{{"memory", journal.NewMemoryStore(journal.MemoryOptions{})}, {"files", fileStore(b)}} {
		b.Run(s.name, func(b *testing.B) {
			e, id := benchEngine(b, s.store, func(_ context.Context, sink model.Sink) error {
				sink.Done(0, &p.AssistantMessage{Text: "hello"})
				return nil
			})
			b.ReportAllocs()
			for b.Loop() {
				end, err := engine.RunTurn(b.Context(), e, id, p.UserTurn{Content: p.Text("hi")}, func(p.Event) {})
				if err != nil || end.End.Reason != p.Completed {
					b.Fatalf("%+v, %v", end, err)
				}
			}
		})
	}
}

// 20,000 deltas as fast as they come, through the engine to one subscriber.
func BenchmarkTurnOf20000Deltas(b *testing.B) {
	e, id := benchEngine(b, fileStore(b), func(_ context.Context, sink model.Sink) error {
		for range 20000 {
			sink.Delta(0, p.DeltaMessage, "word ")
		}
		sink.Done(0, &p.AssistantMessage{Text: strings.Repeat("word ", 20000)})
		return nil
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.RunTurn(b.Context(), e, id, p.UserTurn{Content: p.Text("hi")}, func(p.Event) {}); err != nil {
			b.Fatal(err)
		}
	}
}
