// Package web serves conversations over HTTP: a page to watch, stop, steer and approve from a browser, and
// the API below it. It translates between HTTP and [engine.Engine]; what is shown is the one
// transcript, drawn by package render and kept up to date by package live.
//
// Start with [New] and the table of routes. guard.go says who is let in.
package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	"github.com/fermata-agent/fermata/internal/surface/web/notify"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options are what a server works with.
type Options struct {
	Engine  engine.Engine
	Access  *access.Store
	Key     proof.Key // by which pages know the server
	Origins []string  // under which it is reached, such as http://127.0.0.1:7777; at least one
	Version string
	Dir     string // where new conversations begin unless they say otherwise

	Push *notify.Push    // nil if browsers cannot be notified
	Hook *notify.Webhook // nil if there is none

	Failed func(error) // called when a notification could not be sent; may be nil

	Panicked panics.Log // keeps the traces of requests that panicked; may be nil

	// Settings makes those of a new conversation, with remarks for people.
	Settings func(app.SettingsRequest) (p.Settings, []string, error)
	// Undo says what putting back the files of a turn would do.
	Undo func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error)
	// Cost is what some usage costs in US dollars, if that is known.
	Cost func(p.Settings, p.Usage) (float64, bool)
}

// A Server is the page and the API.
type Server struct {
	o       Options
	ctx     context.Context
	hub     *live.Hub
	lobby   *live.Lobby
	mux     *http.ServeMux
	key     proof.Key
	fresh   *proof.Fresh
	origins map[string]string // by the Host header
	streams slots             // one for each stream that is open
	wrong   limiters          // failed tries by address
	pace    limiters          // requests by session
	ping    time.Duration     // how often a stream shows that it lives
	pushes  chan struct{}     // has room for one: that a browser wants to be notified

	mu   sync.Mutex
	made map[string]*begun // by path and name; guarded by mu
}

// Limits that a person does not reach.
const (
	maxStreams     = 512
	sessionStreams = 64
	readerStreams  = 256      // of all sessions that can only read
	maxBody        = 16 << 20 // an image may be in a message
	strangerBody   = 4 << 10  // of who is not known yet
	strangerTime   = 10 * time.Second
	wrongPerIP     = rate.Limit(0.2)
	wrongBurst     = 20
	requestRate    = rate.Limit(30)
	requestBurst   = 120
)

// New makes a server, whose streams end with ctx.
func New(ctx context.Context, o Options) *Server {
	s := &Server{
		o: o, ctx: ctx, key: o.Key, fresh: proof.NewFresh(), mux: http.NewServeMux(), origins: map[string]string{}, streams: slots{most: maxStreams, perSession: sessionStreams, readers: readerStreams}, ping: pingEvery, pushes: make(chan struct{}, 1),
		lobby: live.NewLobby(ctx, live.Options{Engine: o.Engine, Panicked: o.Panicked}), made: map[string]*begun{},
		wrong: limiters{rate: wrongPerIP, burst: wrongBurst}, pace: limiters{rate: requestRate, burst: requestBurst},
	}
	s.hub = live.NewHub(ctx, live.Options{Engine: o.Engine, Cost: o.Cost, Changed: s.lobby.Kick, Panicked: o.Panicked})
	for _, origin := range o.Origins {
		s.origins[hostOf(origin)] = origin
	}
	for _, r := range routes() {
		s.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) { s.admit(w, q, r) })
	}
	return s
}

// A right is what a request needs.
type right int

const (
	anyone  right = iota // the handler looks by itself
	reading              // a session
	watches              // a session; a browser's must say from where it asks
	writing              // a session that is not read-only; likewise
)

// A route is one method of one path.
type route struct {
	method, path string
	right        right
	handle       func(*Server, http.ResponseWriter, *request)
}

// A request is one that was let in.
type request struct {
	*http.Request
	session access.Session
	claim   proof.Claim // of a browser
}

func routes() []route {
	return []route{
		{"GET", "/{$}", anyone, (*Server).page},
		{"GET", "/sw.js", anyone, (*Server).worker},
		{"GET", "/icon.svg", anyone, (*Server).icon},
		{"GET", "/app.webmanifest", anyone, (*Server).manifest},
		{"GET", "/answer/{code}", anyone, (*Server).answerPage},
		{"POST", "/answer/{code}", anyone, (*Server).answer},

		{"GET", "/api/v1/hello", anyone, (*Server).hello},
		{"POST", "/api/v1/login", anyone, (*Server).login},
		{"GET", "/api/v1/openapi.json", reading, (*Server).openAPI},
		{"GET", "/api/v1/session", reading, (*Server).session},
		{"DELETE", "/api/v1/session", watches, (*Server).logout},
		{"GET", "/api/v1/conversations", reading, (*Server).list},
		{"POST", "/api/v1/conversations", writing, (*Server).create},
		{"GET", "/api/v1/conversations/{id}", reading, (*Server).get},
		{"GET", "/api/v1/conversations/{id}/events", watches, (*Server).events},
		{"POST", "/api/v1/conversations/{id}/ops", writing, (*Server).submit},
		{"POST", "/api/v1/conversations/{id}/fork", writing, (*Server).fork},
		{"POST", "/api/v1/conversations/{id}/archive", writing, (*Server).archive},
		{"POST", "/api/v1/conversations/{id}/unarchive", writing, (*Server).unarchive},
		{"GET", "/api/v1/conversations/{id}/diff", reading, (*Server).diff},
		{"GET", "/api/v1/conversations/{id}/undo", reading, (*Server).previewUndo},
		{"POST", "/api/v1/conversations/{id}/undo", writing, (*Server).undo},
		{"GET", "/api/v1/conversations/{id}/items", reading, (*Server).items},
		{"GET", "/api/v1/conversations/{id}/items/{item}", reading, (*Server).item},
		{"POST", "/api/v1/view", watches, (*Server).view},
		{"POST", "/api/v1/push", writing, (*Server).subscribe},
	}
}

// ServeHTTP serves the page and the API. A request that panics is answered with an error, or if it was answered in part its
// connection ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answerWriter{ResponseWriter: w}
	defer func() {
		value := recover()
		if value == http.ErrAbortHandler {
			panic(value)
		}
		err := s.o.Panicked.Caught(value)
		if err != nil && answer.begun {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			refuse(w, http.StatusInternalServerError, "internal", err.Error())
		}
	}()
	s.guard(answer, r)
}

// An answerWriter knows whether something was answered.
type answerWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *answerWriter) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Notify reports to those who do not look what goes on, until ctx ends.
func (s *Server) Notify(ctx context.Context) {
	if s.o.Push == nil && s.o.Hook == nil {
		return
	}
	if st, err := s.o.Access.Read(); s.o.Hook == nil && err == nil && len(st.Push) == 0 {
		select { // until then there is no need to look what goes on
		case <-s.pushes:
		case <-ctx.Done():
			return
		}
	}
	failed := s.o.Failed
	if failed == nil {
		failed = func(error) {}
	}
	notify.Run(ctx, notify.Options{
		Engine: s.o.Engine, Lobby: s.lobby, Access: s.o.Access, Origin: s.o.Origins[0], Hook: s.o.Hook, Push: s.o.Push, Failed: failed, Panicked: s.o.Panicked,
	})
}
