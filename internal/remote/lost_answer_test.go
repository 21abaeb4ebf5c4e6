package remote_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A forgetful engine does what it is asked, and its process is gone before the first answer is sent.
type forgetful struct {
	engine.Engine
	die  func()
	done atomic.Bool // it has died
}

func (f *forgetful) forget() {
	if !f.done.Swap(true) {
		f.die()
	}
}

func (f *forgetful) Create(ctx context.Context, s p.Settings) (p.ConversationID, error) {
	defer f.forget()
	return f.Engine.Create(ctx, s)
}

func (f *forgetful) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	defer f.forget()
	return f.Engine.Fork(ctx, id, upTo)
}

func (f *forgetful) Archive(ctx context.Context, id p.ConversationID) error {
	defer f.forget()
	return f.Engine.Archive(ctx, id)
}

func (f *forgetful) Delete(ctx context.Context, id p.ConversationID) error {
	defer f.forget()
	return f.Engine.Delete(ctx, id)
}

// What is asked again because the answer was lost is done once.
func TestLostAnswer(t *testing.T) {
	for name, ask := range map[string]struct {
		f    func(t *testing.T, c engine.Engine, id p.ConversationID) error
		want int // conversations afterwards
	}{
		"create": {func(t *testing.T, c engine.Engine, _ p.ConversationID) error {
			id, err := c.Create(t.Context(), p.Settings{Model: "mine"})
			if err != nil {
				return err
			}
			snap, err := c.Resume(t.Context(), id)
			if err == nil && snap.Settings.Model != "mine" {
				t.Errorf("it was created with %+v", snap.Settings)
			}
			return err
		}, 2},
		"fork": {func(t *testing.T, c engine.Engine, id p.ConversationID) error {
			fork, err := c.Fork(t.Context(), id, 0)
			if err != nil {
				return err
			}
			snap, err := c.Resume(t.Context(), fork)
			if err == nil && snap.Title != "original" {
				t.Errorf("the fork is %+v", snap)
			}
			return err
		}, 2},
		"archive": {func(t *testing.T, c engine.Engine, id p.ConversationID) error { return c.Archive(t.Context(), id) }, 1},
		"delete":  {func(t *testing.T, c engine.Engine, id p.ConversationID) error { return c.Delete(t.Context(), id) }, 0},
	} {
		for _, open := range []string{"the same owner", "another owner"} {
			t.Run(name+"/"+open, func(t *testing.T) {
				first := enginetest.New(t, enginetest.Options{})
				id := first.Begin()
				first.Must(id, p.Rename{Title: "original"})
				second := first
				if open == "another owner" {
					second = enginetest.New(t, enginetest.Options{Store: first.Store})
				}
				f := &forgetful{Engine: first.Local}
				serve := func(ctx context.Context, o remote.Options) (*remote.Engine, error) {
					ours, theirs := net.Pipe()
					var e engine.Engine = f
					if f.done.Load() {
						e = second.Local
						_ = first.Release(ctx, id)
					}
					f.die = func() {
						ours.Close()
						if second != first {
							_ = first.Shutdown(context.WithoutCancel(t.Context())) // as its end would, but for what it had begun
						}
					}
					go func() { _ = remote.NewServer(e, "test").ServeConn(context.WithoutCancel(t.Context()), ours) }() // ends with the connection
					return remote.Connect(ctx, theirs, o)
				}
				c := remote.NewRouter(enginetest.New(t, enginetest.Options{Store: first.Store}).Local, nil, remote.Options{Serve: serve})
				if err := ask.f(t, c, id); err != nil {
					t.Errorf("answered with %v", err)
				}
				if !f.done.Load() {
					t.Error("no answer was lost")
				}
				infos, err := first.Store.List(t.Context())
				if err != nil || len(infos) != ask.want {
					t.Errorf("%d conversations, want %d: %+v, %v", len(infos), ask.want, infos, err)
				}
				_ = c.Shutdown(context.WithoutCancel(t.Context()))
			})
		}
	}
}
