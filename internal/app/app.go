// Package app is how turns are run, whatever the surface: it reads the configuration and
// puts engine, models, tools and notifications together. [Open] gives an [App], which turns
// what a client asks for into settings, undoes turns and lists background commands.
// Surfaces and commands translate; what two of them need is here.
package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/fleet/pipe"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Error is one for people: what failed, and what to do about it.
type Error = hint.Error

// usage returns an error of the command line.
func usage(format string, args ...any) error { return hint.Usagef(format, args...) }

// An App is an engine and what it runs on.
type App struct {
	Engine   *remote.Router
	Config   *config.Config
	Models   *Models
	Projects *project.Store // trust and permissions
	Cwd      string         // the directory to work in
	MadeCwd  bool           // that directory is made for the conversation, so that no user has to trust it
	Warnings []config.Warning
	Detached bool   // turns are run by the process that serves, and outlive this one
	Client   string // what this process is to others
	Member   Member // how it takes part in a fleet

	shared  *shared
	host    *remote.Host
	uses    *uses
	spawner *proc.Spawner
	servers *mcp.Servers // nil if none is configured
	base    context.Context
	limits  limits.Limiter

	store store.Opened

	warn func(config.Warning) // may be nil

	mu     sync.Mutex
	warned map[[2]string]bool // provider and model, of which a warning said that the window is not known; guarded by mu
}

// Open reads the configuration and opens what turns are run with. The caller
// calls Close.
func Open(ctx context.Context, o Options) (*App, error) {
	l, err := Load(o)
	if o.Warn != nil {
		for _, w := range l.Warnings {
			o.Warn(w)
		}
	}
	if err != nil {
		return nil, err
	}
	w := &shared{base: ctx, version: o.Version, warn: o.Warn}
	if w.limits, err = limits.New(limits.File, o.Limits, l.Config); err != nil {
		return nil, err
	}
	if w.spawner, err = proc.NewSpawner(); err != nil {
		return nil, fmt.Errorf("prepare for running commands: %w", err)
	}
	r := w.newSetup(l, o.Snapshots, os.Environ)
	w.own = r
	if o.Warn != nil {
		for _, more := range r.Warnings[len(l.Warnings):] {
			o.Warn(more)
		}
	}
	warn := func(text string) {
		if o.Warn != nil {
			o.Warn(config.Warning{Problem: config.Problem{Text: text}})
		}
	}
	host := remote.NewHost(ctx, filepath.Join(l.Config.Home, runDir), o.Version, func(err error) { warn(err.Error() + "; other terminals cannot join") })
	uses := newUses()
	host.Changed, host.Panicked = uses.notice, panics.ToFile(l.Config.Home)
	// Limits of this process hold for what is run here. An owner that is joined would not keep them.
	kept := store.Place{Home: l.Config.Home, Store: l.Config.Store, Member: o.Member, Address: host.Address, Join: !w.limits.Own, Warn: warn, Accept: func(l *pipe.Listener) { host.Accept(l) }, Renewed: w.spawner.Lease}
	cfg := w.engineConfig(r)
	cfg.KeepWaiting, cfg.Changed = o.Serve, uses.notice
	cfg.TurnEnded, cfg.TurnWaits = o.Watch.Ended, o.Watch.Waits
	joins := remote.Options{Client: clientName(o.Client), Brings: func() (json.RawMessage, error) { return describeProcess(o, l.Options.Cwd) }}
	detach := o.Detach || o.Detachable && l.Config.Detach
	if detach {
		joins.Serve = connectServe(l.Config.Home)
		joins.Serving = func() bool { return isServed(l.Config.Home) }
	}
	e, journals, err := openEngine(ctx, host, kept, cfg, joins)
	if err != nil {
		return nil, err
	}
	return &App{
		Engine: e, Config: l.Config, Models: r.models, Projects: l.Projects, Cwd: l.Options.Cwd, Warnings: r.Warnings,
		Detached: detach, shared: w, host: host, uses: uses, spawner: w.spawner, servers: r.kit.servers, base: ctx, limits: w.limits, warn: o.Warn, store: journals, Member: o.Member, Client: clientName(o.Client),
	}, nil
}

// A TurnWatch is called for the turns of this process: when they have ended, and when they begin to wait. It must not block. nil is
// fine.
type TurnWatch struct {
	Ended, Waits func(p.TurnSummary)
}

// A Member is how a process takes part in a fleet.
type Member = nats.Member

// Store returns the store of conversations.
func (a *App) Store() store.Opened { return a.store }

// clientName names this process for people that use others.
func clientName(command string) string {
	return fmt.Sprintf("%s %d", cmp.Or(command, "fermata"), os.Getpid())
}

// runDir is where processes listen for others, in the home: commands cannot reach it.
const runDir = "run"

// OpenStore opens the conversations for reading and repair. Nothing is run, so no process
// can join.
func OpenStore(ctx context.Context, version string) (*remote.Router, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	settings, err := store.Settings(home)
	if err != nil {
		return nil, configError(err)
	}
	cfg := engine.Config{Version: version, Model: hint.NoModel}
	e, _, err := openEngine(ctx, nil, store.Place{Home: home, Store: settings, Join: true}, cfg, remote.Options{Client: clientName("")})
	return e, err // its store is closed by the end of the program
}

// openEngine makes an engine over the store of a place. A node that can no longer be
// sure of its conversations stops what it runs.
func openEngine(ctx context.Context, host *remote.Host, kept store.Place, e engine.Config, o remote.Options) (*remote.Router, store.Opened, error) {
	e.Panicked = panics.ToFile(kept.Home)
	var local *engine.Local
	kept.Lost = func() { local.StopAll(ctx, lostLease) } // nothing is opened before local is set
	kept.Full = func(err error) { local.StopAll(ctx, fullStore(err)) }
	journals := store.Open(ctx, kept)
	e.Store = native.Store(journals, journals.Close)
	journals.Keep(&e)
	var err error
	if local, err = engine.Open(ctx, e); err != nil {
		return nil, journals, err
	}
	o.Program, o.Alone = e.Version, !kept.Join
	o.Dir, o.Reach = filepath.Join(kept.Home, runDir), journals.Reach
	return remote.NewRouter(local, host, o), journals, nil
}

// lostLease is what turns end with when this process can no longer be sure that it owns their conversations.
var lostLease = p.Error{
	Kind: p.ErrorJournal,
	Message: "the NATS servers did not answer for so long that another machine may take this conversation over; " +
		"the turn was stopped before that",
	Hint: "check the servers with fermata doctor, then resume; what was recorded before is safe",
}

// fullStore is what turns end with when there is no room left to record more than their ends.
func fullStore(err error) p.Error {
	why := err.Error() + "; the turn was stopped so that its end could be recorded"
	return p.Error{Kind: p.ErrorJournal, Message: why, Hint: "make room, then resume; what was recorded before is safe"}
}

// Panicked keeps the traces of defects, for bug reports.
func (a *App) Panicked() panics.Log { return panics.ToFile(a.Config.Home) }

// shutdownBound is how long the end of the program may take.
const shutdownBound = 3 * time.Second

// Close stops what runs and leaves nothing behind.
func (a *App) Close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), shutdownBound)
	defer cancel()
	_ = a.Engine.Shutdown(ctx) // a journal that failed has been reported by the turn's end
	a.shared.closeServers()
	a.store.Close()
	a.spawner.Close()
	a.shared.starting.Wait()
}
