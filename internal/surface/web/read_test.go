package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	p "github.com/fermata-agent/fermata/protocol"
)

// A puppetRig is a server over an engine that is played by the test. Requests are made without a network.
type puppetRig struct {
	t       *testing.T
	e       *enginetest.Engine
	s       *Server
	session access.Credentials
}

func newPuppetRig(t *testing.T, e *enginetest.Engine, serve engine.Engine, panicked func(any, []byte)) *puppetRig {
	t.Helper()
	store := access.Open(t.TempDir())
	s := New(t.Context(), Options{
		Engine: serve, Access: store, Origins: []string{"http://page"}, Version: "test", Dir: "/w", Panicked: panicked,
		Settings: func(app.SettingsRequest) (p.Settings, []string, error) { return p.Settings{Cwd: "/w"}, nil, nil },
		Undo: func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error) {
			return nil, errors.New("nothing to undo")
		},
	})
	code, err := store.NewLink(access.Everything)
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Login(code, access.Client{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return &puppetRig{t, e, s, session}
}

// get makes a request. A stream is read until the server has nothing more to say.
func (r *puppetRig) get(method, path, body string) (int, string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	q := httptest.NewRequestWithContext(ctx, method, "http://page"+path, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer "+r.session.Token)
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		r.s.ServeHTTP(w, q)
	}()
	synctest.Wait()
	cancel()
	<-done
	return w.Code, w.Body.String()
}

// A conversation can be read in every way while its turn is in any state, and what was said is in it.
func TestEveryStateCanBeRead(t *testing.T) {
	for _, state := range enginetest.TurnStates() {
		t.Run(state.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, enginetest.Options{})
				r := newPuppetRig(t, e, e, func(value any, stack []byte) { t.Errorf("%v\n%s", value, stack) })
				id := e.Begin()
				e.Say(id, "hi")
				e.Request().Answer("hello there")
				synctest.Wait()
				id = state.Enter(t, e, id)
				synctest.Wait()
				at := "/api/v1/conversations/" + string(id)
				for _, x := range []struct{ method, path, body, has string }{
					{"GET", "/api/v1/conversations", "", string(id)},
					{"GET", at, "", string(id)},
					{"GET", at + "/events", "", "hello there"},
					{"GET", at + "/items?before=99", "", "hello there"},
					{"GET", at + "/items/1.1.0", "", "hello there"},
					{"GET", at + "/diff", "", "turns"},
					{"POST", "/api/v1/view", `{"list":true,"conversation":"` + string(id) + `"}`, "hello there"},
				} {
					if status, text := r.get(x.method, x.path, x.body); status != http.StatusOK || !strings.Contains(text, x.has) {
						t.Errorf("%s %s: %d %s", x.method, x.path, status, text)
					}
				}
			})
		})
	}
}

// A defect that shows in a request, or in what a page follows, is an error there. The server goes on.
func TestPanicIsAnErrorOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		faulty := &enginetest.Faulty{Engine: e, ID: e.Begin()}
		var traces atomic.Int32
		r := newPuppetRig(t, e, faulty, func(any, []byte) { traces.Add(1) })
		at := "/api/v1/conversations/" + string(faulty.ID)
		faulty.Broken.Store(true)
		for _, x := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/api/v1/conversations", "", http.StatusInternalServerError},
			{"GET", at, "", http.StatusInternalServerError},
			{"GET", at + "/items", "", http.StatusInternalServerError},
			{"POST", at + "/ops", `{"kind":"interrupt","body":{}}`, http.StatusInternalServerError},
			{"POST", at + "/archive", `{}`, http.StatusInternalServerError},
			{"GET", at + "/events", "", http.StatusInternalServerError},
		} {
			before := traces.Load()
			if status, text := r.get(x.method, x.path, x.body); status != x.status || !strings.Contains(text, "internal error: a defect") || traces.Load() == before {
				t.Errorf("%s %s: %d %s; %d traces", x.method, x.path, status, text, traces.Load()-before)
			}
		}
		faulty.Broken.Store(false)
		if status, text := r.get("GET", at, ""); status != http.StatusOK {
			t.Errorf("afterwards: %d %s", status, text)
		}
	})
}
