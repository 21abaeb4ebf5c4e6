package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A process that serves ends when nothing goes on. A pending approval, a hold and a client count as something.
func TestServeEndsWhenIdle(t *testing.T) {
	for name, busy := range map[string]func(*testing.T, *App, *enginetest.Engine) (done func()){
		"nothing": func(*testing.T, *App, *enginetest.Engine) func() { return nil },
		"an approval": func(t *testing.T, _ *App, e *enginetest.Engine) func() {
			id := e.Begin()
			e.Say(id, "go")
			q := e.Request()
			q.Call("c", "work", "{}")
			q.End()
			e.Run().Ask("rm")
			return func() { e.Must(id, p.Interrupt{}) }
		},
		"a hold": func(t *testing.T, _ *App, e *enginetest.Engine) func() {
			id, err := e.Create(t.Context(), p.Settings{OnLimit: p.OnLimitHold})
			if err != nil {
				t.Fatal(err)
			}
			e.Say(id, "go")
			e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: 100 * time.Hour})
			return func() { e.Must(id, p.Interrupt{}) }
		},
		"a turn": func(_ *testing.T, _ *App, e *enginetest.Engine) func() {
			e.Say(e.Begin(), "go")
			q := e.Request()
			return func() { q.Answer("done") }
		},
		"a service": func(_ *testing.T, a *App, _ *enginetest.Engine) func() { return a.Busy() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				uses := newUses()
				e := enginetest.New(t, enginetest.Options{Changed: uses.notice, Config: func(c *engine.Config) { c.KeepWaiting = true }})
				a := &App{Engine: remote.NewRouter(e.Local, nil, remote.Options{}), uses: uses, host: remote.NewHost(t.Context(), "", "", nil)}
				done := busy(t, a, e)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				idle := make(chan struct{})
				go func() {
					a.awaitIdle(ctx, 10*time.Minute)
					close(idle)
				}()
				if done != nil {
					time.Sleep(24 * time.Hour)
					synctest.Wait()
					select {
					case <-idle:
						t.Fatal("it has ended")
					default:
					}
					done()
				}
				began := time.Now()
				<-idle
				if d := time.Since(began); d < 10*time.Minute || d > 12*time.Minute {
					t.Errorf("it ended after %v", d)
				}
			})
		})
	}
}

// Whoever lists what runs is no client of what is listed.
func TestListingIsNoUse(t *testing.T) {
	t.Setenv("FERMATA_HOME", t.TempDir())
	a := openDemo(t, limits.Options{})
	address, err := a.host.Listen()
	if err != nil {
		t.Fatal(err)
	}
	x := lookAt(t.Context(), address, "test")
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	defer disconnect([]Process{x})
	if n := a.host.Clients(); n != 0 {
		t.Errorf("it has %d clients", n)
	}
}
