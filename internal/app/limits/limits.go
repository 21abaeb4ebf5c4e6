// Package limits knows what is allowed on this machine and to the clients of a server: the requirements of the
// administrator, the flags of the server, and what these imply. It is the one place that decides what a client may raise:
// whatever runs, writes or configures something for a client asks a [Limiter].
package limits

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/app/servers"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/regular"
	p "github.com/fermata-agent/fermata/protocol"
)

// File is what the administrator of a machine demands of everybody who
// runs fermata on it.
const File = "/etc/fermata/requirements.toml"

// Options are what the command line of a server says about limits for its
// clients.
type Options struct {
	Clients     bool // others than the user of this process say what to do
	MaxSandbox  string
	MinApproval string
	Providers   []string
	Keys        []string // variables
	Dirs        []string
	ShareKey    bool // clients may ask for the key
}

// requirements is the form of File.
type requirements struct {
	SandboxModes     []p.SandboxMode    `toml:"allowed_sandbox_modes"`
	ApprovalPolicies []p.ApprovalPolicy `toml:"allowed_approval_policies"`
	Providers        []string           `toml:"allowed_providers"`
	KeyVariables     []string           `toml:"allowed_key_variables"`
	Directories      []string           `toml:"allowed_directories"`
	Escalation       *bool              `toml:"allow_escalation"`
	KeyRequests      *bool              `toml:"allow_key_requests"`

	MCPServers map[string]servers.Requirement `toml:"mcp_servers"`
}

// A Limiter knows what is allowed, and who may have the key.
type Limiter struct {
	policy.Limits
	Own      bool // there are limits of this process, beside those of the machine
	ShareKey bool // clients may ask for the key
	Servers  servers.Limits

	// ConfineUser says that a command line of a client's own runs in the sandbox of its conversation, or not at all: the command
	// line of this server limits the sandbox. Without that limit it runs with all rights of the user, as it does in the terminal UI.
	ConfineUser bool
}

// New puts the limits together: those of the machine, of the command line,
// and for clients what the command line says of the sandbox and of approvals.
func New(file string, o Options, cfg *config.Config) (Limiter, error) {
	machine, req, err := readRequirements(file)
	if err != nil {
		return Limiter{}, &hint.Error{Err: err, Hint: "the administrator of this machine has to correct the file"}
	}
	line, err := o.limits(cfg)
	if err != nil {
		return Limiter{}, err
	}
	if o.Clients {
		line = line.And(impliedLimits(cfg))
	}
	return Limiter{
		Limits: machine.And(line), Own: line.From != "", ConfineUser: o.Clients && line.Sandbox != nil && !slices.Contains(line.Sandbox, p.SandboxFullAccess), ShareKey: o.ShareKey && (req.KeyRequests == nil || *req.KeyRequests),
		Servers: servers.Limits{Servers: req.MCPServers, From: file},
	}, nil
}

// readRequirements reads the file. Whatever is wrong with it is an error: a limit
// that is not understood must not become none.
func readRequirements(file string) (policy.Limits, requirements, error) {
	var r requirements
	text, err := regular.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return policy.Limits{}, r, nil
	}
	if err != nil {
		return policy.Limits{}, r, fmt.Errorf("read the requirements: %w", err)
	}
	dec := toml.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			err = errors.New(strict.String())
		}
		return policy.Limits{}, r, fmt.Errorf("read %s: %w", file, err)
	}
	var given map[string]any
	_ = toml.Unmarshal(text, &given) // it was decoded above
	for key, value := range given {
		if list, ok := value.([]any); ok && len(list) == 0 {
			return policy.Limits{}, r, fmt.Errorf("read %s: %s: an empty list would allow nothing; leave it out if there is no limit", file, key)
		}
	}
	for _, mode := range r.SandboxModes {
		if _, ok := policy.SandboxUpTo(mode); !ok {
			return policy.Limits{}, r, fmt.Errorf("read %s: allowed_sandbox_modes: there is no mode %q", file, mode)
		}
	}
	for _, a := range r.ApprovalPolicies {
		if _, ok := policy.ApprovalFrom(a); !ok {
			return policy.Limits{}, r, fmt.Errorf("read %s: allowed_approval_policies: there is no policy %q", file, a)
		}
	}
	if given["mcp_servers"] != nil && r.MCPServers == nil {
		r.MCPServers = map[string]servers.Requirement{} // an empty table allows none
	}
	for name, s := range r.MCPServers {
		if err := s.Identity.Check(); err != nil {
			return policy.Limits{}, r, fmt.Errorf("read %s: mcp_servers.%s.identity: %w", file, name, err)
		}
	}
	dirs, err := realDirs(r.Directories)
	if err != nil {
		return policy.Limits{}, r, fmt.Errorf("read %s: allowed_directories: %w", file, err)
	}
	l := policy.Limits{
		Sandbox: r.SandboxModes, Approval: r.ApprovalPolicies, Providers: r.Providers, Keys: r.KeyVariables, Dirs: dirs,
		NoEscalation: r.Escalation != nil && !*r.Escalation, From: file,
	}
	return l, r, nil
}

// limits are those that the flags name.
func (o Options) limits(cfg *config.Config) (policy.Limits, error) {
	l := policy.Limits{Providers: o.Providers, Keys: o.Keys}
	var err error
	if l.Dirs, err = realDirs(o.Dirs); err != nil {
		return l, hint.Usagef("--allow-dir: %w", err)
	}
	ok := true
	if o.MaxSandbox != "" {
		if l.Sandbox, ok = policy.SandboxUpTo(p.SandboxMode(o.MaxSandbox)); !ok {
			return l, hint.Usagef("--max-sandbox: there is no mode %q; there are read-only, workspace-write, danger-full-access", o.MaxSandbox)
		}
		if p.SandboxMode(o.MaxSandbox) != p.SandboxFullAccess {
			l.NoEscalation, l.Workspace = true, new(cfg.Sandbox(p.SandboxWorkspaceWrite))
		}
	}
	if o.MinApproval != "" {
		if l.Approval, ok = policy.ApprovalFrom(p.ApprovalPolicy(o.MinApproval)); !ok {
			return l, hint.Usagef("--min-approval: there is no policy %q; there are untrusted, on-failure, on-request, never", o.MinApproval)
		}
	}
	if l.Sandbox != nil || l.Approval != nil || len(l.Providers)+len(l.Keys)+len(l.Dirs) > 0 {
		l.From = "the command line of this server"
	}
	return l, nil
}

// impliedLimits are what the command line says in so many words: no client gets
// more than that.
func impliedLimits(cfg *config.Config) policy.Limits {
	var l policy.Limits
	if cfg.Source("sandbox_mode").Kind >= config.FromOverride && cfg.SandboxMode != p.SandboxFullAccess {
		l.Sandbox, _ = policy.SandboxUpTo(cfg.SandboxMode)
		l.Workspace = new(cfg.Sandbox(p.SandboxWorkspaceWrite))
	}
	if cfg.Source("approval_policy").Kind >= config.FromOverride && cfg.Approval != p.ApprovalNever {
		l.Approval, _ = policy.ApprovalFrom(cfg.Approval)
	}
	if l.Sandbox != nil || l.Approval != nil {
		l.From = "the command line of this server"
	}
	return l
}

func realDirs(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		real, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return nil, err
		}
		out = append(out, real)
	}
	return out, nil
}

// Allow reports what about some settings is not allowed here.
func (l Limiter) Allow(s p.Settings) error {
	if real, err := filepath.EvalSymlinks(s.Cwd); err == nil {
		s.Cwd = real
	}
	return l.Check(s)
}

// AllowUndo reports whether a client may have the files of a turn put back, which writes them.
func (l Limiter) AllowUndo() error {
	if !l.ConfineUser {
		return nil
	}
	return l.CheckSandbox(p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite})
}

// AllowServers leaves out those MCP servers that a client may not bring: they run outside the sandbox, so none where the command line
// limits that.
func (l Limiter) AllowServers(defs map[string]config.MCPServer) (map[string]config.MCPServer, []config.Warning) {
	if !l.ConfineUser && !l.NoEscalation {
		return l.Servers.Allow(defs)
	}
	var warnings []config.Warning
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		text := fmt.Sprintf("the MCP server %s is not used: %s limits the sandbox, outside of which it would run", name, l.From)
		warnings = append(warnings, config.Warning{Problem: config.Problem{Text: text}})
	}
	return nil, warnings
}

// AllowPermission reports whether a client may have something run unasked from now on, also by other processes: not if
// approvals cannot lift the limits, or have limits themselves.
func (l Limiter) AllowPermission() error {
	if l.NoEscalation || l.Approval != nil {
		return &policy.LimitError{What: "a lasting permission", Value: "of a client", From: l.From}
	}
	return nil
}

// Settle returns settings that are allowed: what the user asked for must be, the
// rest is made as strict as it has to be. The notes are for people.
func (l Limiter) Settle(s p.Settings, asked p.Overrides) (p.Settings, []string, error) {
	if asked.Sandbox != nil {
		if err := l.CheckSandbox(s.Sandbox); err != nil {
			return s, nil, err
		}
	}
	if asked.Approval != nil {
		if err := l.CheckApproval(s.Approval); err != nil {
			return s, nil, err
		}
	}
	s, notes := l.Clamp(s)
	return s, notes, l.Allow(s)
}

// AllowProvider reports whether a client may define a provider as it does.
func (l Limiter) AllowProvider(pr config.Provider, defined []string) error {
	if len(defined) == 0 {
		return nil
	}
	if len(l.Providers) > 0 {
		return &policy.LimitError{What: "model provider", Value: pr.ID + " with a definition of the client's own", Allowed: slices.Clone(l.Providers), From: l.From}
	}
	return l.CheckKeys(pr.KeyVariables())
}

// Warnings are what people should know of conversations that begin here: which
// instructions are left out, and which settings are not as configured.
func (l Limiter) Warnings(cfg *config.Config, cwd string) []config.Warning {
	_, warnings := config.Instructions(cfg.Home, cwd, cfg.ProjectDocMaxBytes, cfg.ProjectDocFallbacks...)
	if l.From == "" { // there are no limits
		return warnings
	}
	_, notes := l.Clamp(cfg.Settings(config.Choice{}, cwd, ""))
	for _, note := range notes {
		warnings = append(warnings, config.Warning{Problem: config.Problem{Text: note}})
	}
	return warnings
}
