package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/app/notify"
	"github.com/fermata-agent/fermata/internal/app/undo"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/shim/applypatch"
	"github.com/fermata-agent/fermata/internal/tool/mcp"
)

// A clientEnvironment is how a client was started. Another process that runs its turns uses that, and not
// how it was started itself. It holds keys: it is sent to processes of the same user, and kept
// nowhere.
type clientEnvironment struct {
	Env       []string     `json:"env"`
	Dir       string       `json:"dir"` // the directory to work in
	Profile   string       `json:"profile,omitempty"`
	Overrides []string     `json:"overrides,omitempty"`
	Flags     config.Flags `json:"flags,omitzero"`
	Snapshots bool         `json:"snapshots,omitempty"`
}

// describeProcess is how this process was started.
func describeProcess(o Options, dir string) (json.RawMessage, error) {
	data, err := json.Marshal(clientEnvironment{Env: os.Environ(), Dir: dir, Profile: o.Profile, Overrides: o.Overrides, Flags: o.Flags, Snapshots: o.Snapshots})
	if err != nil {
		return nil, fmt.Errorf("describe this process: %w", err)
	}
	return data, nil
}

// getenv looks a variable up.
func (l clientEnvironment) getenv(name string) string {
	for _, v := range slices.Backward(l.Env) {
		if key, value, ok := strings.Cut(v, "="); ok && key == name {
			return value
		}
	}
	return ""
}

// A setup is what turns are run with: one for this process, and one for each client that
// brings its own.
type setup struct {
	Loaded
	models *Models
	kit    *toolkit
	notify *notify.Program
}

// shared is what all setups of a process share.
type shared struct {
	base    context.Context
	version string
	limits  limits.Limiter
	spawner *proc.Spawner
	warn    func(config.Warning) // may be nil
	own     *setup               // of this process

	starting sync.WaitGroup // programs that are notified

	mu      sync.Mutex
	setups  map[[32]byte]*setup       // of clients, by the sum of what they bring; guarded by mu
	order   [][32]byte                // of setups, the oldest first; guarded by mu
	servers map[[32]byte]*mcp.Servers // by serversKey; guarded by mu
}

// newSetup makes what turns are run with. env is the environment of commands before the
// configuration's rules.
func (w *shared) newSetup(l Loaded, snapshot bool, env func() []string) *setup {
	r := &setup{Loaded: l, models: l.Models(), notify: &notify.Program{Argv: l.Config.Notify, When: l.Config.NotifyWhen, Env: env, Starting: &w.starting}}
	r.kit = &toolkit{config: l.Config, spawner: w.spawner, models: r.models, projects: l.Projects, noEscalation: w.limits.NoEscalation, confineUser: w.limits.ConfineUser, env: env, dir: l.Options.Cwd}
	if snapshot || l.Config.Snapshots {
		r.kit.snapshots = undo.Snapshots(l.Config.Home)
	}
	r.kit.commands = sync.OnceValue(func() string {
		dir, err := applypatch.Install(l.Config.Home)
		if err != nil && w.warn != nil {
			w.warn(config.Warning{Problem: config.Problem{Text: "commands cannot run apply_patch: " + err.Error()}})
		}
		return dir
	})
	servers, warnings := l.mcpServers(w.limits)
	r.Warnings = append(append(r.Warnings, w.limits.Warnings(l.Config, l.Options.Cwd)...), warnings...)
	if len(servers) > 0 {
		r.kit.servers, r.kit.defs = w.serversFor(l, servers), servers
	}
	return r
}

// serversFor returns the MCP servers of a configuration: setups with the same share them.
func (w *shared) serversFor(l Loaded, defs map[string]config.MCPServer) *mcp.Servers {
	key := serversKey(l, defs)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.servers == nil {
		w.servers = map[[32]byte]*mcp.Servers{}
	}
	if w.servers[key] == nil {
		w.servers[key] = l.openServers(w.base, defs, w.spawner, w.limits)
	}
	return w.servers[key]
}

// serversKey is the same for setups whose servers would be started in the same way: what they take from
// the environment counts, and whether their tools may be called does not.
func serversKey(l Loaded, defs map[string]config.MCPServer) [32]byte {
	parts := []any{l.Options.Cwd}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		def := defs[name]
		def.Approval, def.ToolApproval = "", nil
		parts = append(parts, name, def, def.Values(l.Options.Env))
	}
	text, _ := json.Marshal(parts) // they were read from such a form
	return sha256.Sum256(text)
}

// closeServers ends all MCP servers.
func (w *shared) closeServers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		s.Close()
	}
}

// maxSetups is how many setups of clients are kept.
const maxSetups = 32

// forClient returns what the turns of a client are run with: see engine.Config.ForClient.
func (w *shared) forClient(brings any) (engine.TurnConfig, error) {
	if s, ok := brings.(*clienttools.Set); ok { // of a client of this process
		return w.own.with(s).turns(), nil
	}
	raw, ok := brings.(json.RawMessage)
	if !ok {
		return engine.TurnConfig{}, fmt.Errorf("a client brings a %T", brings)
	}
	sum := sha256.Sum256(raw)
	w.mu.Lock()
	r := w.setups[sum]
	w.mu.Unlock()
	if r != nil {
		return r.turns(), nil
	}
	var from clientEnvironment
	if err := json.Unmarshal(raw, &from); err != nil {
		return engine.TurnConfig{}, fmt.Errorf("read what the client brings: %w", err)
	}
	l, err := load(Options{Dir: from.Dir, Profile: from.Profile, Overrides: from.Overrides, Flags: from.Flags, Version: w.version}, from.getenv)
	if err != nil {
		return engine.TurnConfig{}, err
	}
	if err := w.allowLaunch(from, l); err != nil {
		return engine.TurnConfig{}, err
	}
	r = w.newSetup(l, from.Snapshots, func() []string { return from.Env })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.setups == nil {
		w.setups = map[[32]byte]*setup{}
	}
	if w.setups[sum] == nil {
		w.order = append(w.order, sum)
		if len(w.order) > maxSetups {
			delete(w.setups, w.order[0])
			w.order = w.order[1:]
		}
	}
	w.setups[sum] = r
	return r.turns(), nil
}

// allowLaunch reports whether a client that joins may bring what it does: neither its overrides nor
// its environment may define a provider that it could not ask for otherwise.
func (w *shared) allowLaunch(from clientEnvironment, loaded Loaded) error {
	defined := definesProvider(from.Overrides)
	for _, name := range loaded.Config.ProviderVariables() {
		if value := from.getenv(name); value != "" && value != os.Getenv(name) {
			defined = append(defined, name)
		}
	}
	if len(defined) == 0 {
		return nil
	}
	choice, err := loaded.Models().Choose("")
	if err != nil {
		return configError(err)
	}
	return w.limits.AllowProvider(choice.Provider, defined)
}

// with returns the setup with what a client brings beside.
func (r setup) with(s *clienttools.Set) *setup {
	kit := *r.kit
	kit.client, r.kit = s, &kit
	return &r
}

// turns is what turns are run with.
func (r *setup) turns() engine.TurnConfig {
	return engine.TurnConfig{
		Ended: r.notify.TurnEnded, Waiting: r.notify.Waiting, Window: r.models.window, Effort: r.models.effort, KeepTokens: r.Config.CompactKeepTokens, MaxParallel: r.Config.MaxParallelCalls,
		Model: r.models.model, Retries: r.models.retries, Tools: r.kit.tools, AwaitTools: r.kit.await,
		Instructions: instructions, Environment: machine,
	}
}

// engineConfig is what the engine of this process is opened with, except for the store.
func (w *shared) engineConfig(r *setup) engine.Config {
	return engine.Config{Version: w.version, Turns: r.turns(), ForClient: w.forClient, Allow: w.limits.Allow, DefaultWindow: defaultWindow}
}
