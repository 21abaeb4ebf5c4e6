// Package app is how turns are run, whatever the surface: it reads the configuration and
// puts engine, models, tools and notifications together. [Open] gives an [App], which turns
// what a client asks for into settings, undoes turns and lists background commands.
// Surfaces and commands translate; what two of them need is here.
package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/shim/applypatch"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

// An Error is one for people: what failed, and what to do about it.
type Error struct {
	Err   error
	Hint  string // empty if there is none
	Usage bool   // the command line is wrong
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// usage returns an error of the command line.
func usage(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Usage: true}
}

// An App is an engine and what it runs on.
type App struct {
	Engine   *remote.Choosing
	Config   *config.Config
	Models   *Models
	Projects *project.Store // trust and permissions
	Cwd      string         // the directory to work in
	Warnings []config.Warning

	spawner *proc.Spawner
	servers *mcp.Servers // nil if none is configured
	base    context.Context
	notify  *notifier
	limits  limiter

	closeStore func()

	warn    func(config.Warning) // nil if nobody wants to know
	unknown sync.Map             // models of which was said that nothing is known of them
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
	limits, err := newLimiter(RequirementsFile, o.Limits, l.Config)
	if err != nil {
		return nil, err
	}
	servers, warnings := l.mcpServers(limits)
	for _, w := range append(limits.warnings(l), warnings...) {
		l.Warnings = append(l.Warnings, w)
		if o.Warn != nil {
			o.Warn(w)
		}
	}
	spawner, err := proc.NewSpawner()
	if err != nil {
		return nil, fmt.Errorf("prepare for running commands: %w", err)
	}
	m := l.Models()
	kit := &toolkit{config: l.Config, spawner: spawner, models: m, projects: l.Projects, noEscalation: limits.NoEscalation}
	kit.commands = sync.OnceValue(func() string {
		dir, err := applypatch.Install(l.Config.Home)
		if err != nil && o.Warn != nil {
			o.Warn(config.Warning{Problem: config.Problem{Text: "commands cannot run apply_patch: " + err.Error()}})
		}
		return dir
	})
	if o.Snapshots || l.Config.Snapshots {
		kit.snapshots = snapshots(l.Config.Home)
	}
	if len(servers) > 0 {
		kit.servers = l.openServers(ctx, servers, spawner, limits)
	}
	notify := &notifier{argv: l.Config.Notify}
	host := remote.NewHost(ctx, filepath.Join(l.Config.Home, runDir), o.Version, func(err error) {
		if o.Warn != nil {
			o.Warn(config.Warning{Problem: config.Problem{Text: err.Error() + "; other terminals cannot join"}})
		}
	})
	// Limits for clients hold for what is run here. The owner that is joined has its own.
	kept := store.Place{Home: l.Config.Home, Store: l.Config.Store, Address: host.Address, Join: !o.Limits.Clients, Renewed: spawner.Lease}
	e, closeStore := openEngine(ctx, host, kept, conversation.Config{
		Version: o.Version,
		Allow:   limits.allow,
		Notify:  notify.ended,
		Window:  m.window,
		Effort:  m.effort,

		DefaultWindow: defaultWindow,
		KeepTokens:    l.Config.CompactKeepTokens,
		Model:         m.client,
		Retries:       m.retries,
		Tools:         kit.tools,
		AwaitTools:    kit.await,
		Reclaim:       tool.Reclaim, Settle: tool.SettlePatch, Instructions: instructions, Environment: machine,
	})
	return &App{
		Engine: e, Config: l.Config, Models: m, Projects: l.Projects, Cwd: l.Options.Cwd, Warnings: l.Warnings,
		spawner: spawner, servers: kit.servers, base: ctx, notify: notify, limits: limits, warn: o.Warn, closeStore: closeStore,
	}, nil
}

// runDir is where processes listen for others, in the home: commands cannot reach it.
const runDir = "run"

// OpenStore opens the conversations for reading and repair. Nothing is run, so nobody
// can join.
func OpenStore(ctx context.Context, version string) (*remote.Choosing, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, configError(err)
	}
	settings, err := store.Settings(home)
	if err != nil {
		return nil, configError(err)
	}
	e, _ := openEngine(ctx, nil, store.Place{Home: home, Store: settings, Join: true}, conversation.Config{Version: version, Reclaim: tool.Reclaim, Settle: tool.SettlePatch})
	return e, nil // its store is closed by the end of the program
}

// openEngine makes an engine over the store of a place. A node that can no longer be
// sure of its conversations stops what it runs.
func openEngine(ctx context.Context, host *remote.Host, kept store.Place, cfg conversation.Config) (*remote.Choosing, func()) {
	cfg.Panicked = logPanics(kept.Home)
	var local *engine.Local
	kept.Lost = func() { local.InterruptAll(ctx) } // nothing is opened before local is set
	journals, closeStore := store.Open(ctx, kept)
	local = engine.New(ctx, engine.Options{Store: journals, Config: cfg})
	return remote.NewChoosing(local, host, remote.Options{Client: "fermata", Program: cfg.Version, Alone: !kept.Join}), closeStore
}

// logPanics keeps stacks for bug reports: what is recorded of a panic in a model or
// a tool is only that there was one.
func logPanics(home string) func(any, []byte) {
	return func(v any, stack []byte) {
		f, err := os.OpenFile(filepath.Join(home, "panics.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return // the turn has reported the panic itself
		}
		defer f.Close()
		fmt.Fprintf(f, "%s %v\n%s\n", time.Now().UTC().Format(time.RFC3339), v, stack)
	}
}

// shutdownBound is how long the end of the program may take.
const shutdownBound = 3 * time.Second

// Close stops what runs and leaves nothing behind.
func (a *App) Close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), shutdownBound)
	defer cancel()
	_ = a.Engine.Shutdown(ctx) // a journal that failed has been reported by the turn's end
	if a.servers != nil {
		a.servers.Close()
	}
	a.closeStore()
	a.spawner.Close()
	a.notify.wait()
}
