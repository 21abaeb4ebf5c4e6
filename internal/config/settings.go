package config

import (
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/protocol"
)

// Settings are what a conversation in cwd begins with. The user instructions
// are those of AGENTS.md, see [Instructions]. With a zero Choice, provider and
// model are those configured, if any.
func (c *Config) Settings(choice Choice, cwd, userInstructions string) protocol.Settings {
	s := protocol.Settings{
		Cwd: cwd, Provider: c.Provider, Model: c.Model,
		Effort: c.Effort, Summary: c.Summary, Verbosity: c.Verbosity,
		Approval: c.Approval, Sandbox: c.Sandbox(c.SandboxMode),
		Instructions: c.Instructions, Developer: c.Developer, UserInstructions: c.userText(userInstructions),
	}
	if choice.Provider.ID != "" {
		s.Provider, s.Model = choice.Provider.ID, choice.Model
	}
	// The demo model does what the user types, so it may write where the user works.
	if s.Provider == Demo || c.TrustLevel(cwd) == Trusted {
		s.Sandbox = c.TrustedSandbox()
	}
	s.ContextWindow = c.Window(s.Provider, s.Model)
	s.OnLimit = c.OnLimit
	if s.Effort == "" {
		s.Effort = c.DefaultEffort(s.Provider, s.Model)
	}
	if s.Summary == "" && s.Effort != "" {
		s.Summary = "auto" // a service that gives none is asked again without
	}
	return s
}

// ExecSettings are Settings for a run without a user: nothing is asked, unless this
// very run says otherwise with a flag, -c or a profile named by one of them. The
// file's policy is meant for a user at a terminal. Asking after a command has failed
// is of no use then: the refusal would only hide what it printed.
func (c *Config) ExecSettings(choice Choice, cwd, userInstructions string) protocol.Settings {
	s := c.Settings(choice, cwd, userInstructions)
	if !c.givenForThisRun("approval_policy") || s.Approval == protocol.ApprovalOnFailure {
		s.Approval = protocol.ApprovalNever
	}
	return s
}

// AttendedOnLimit is what becomes of a turn at a limit while a user watches it: it
// waits, unless the configuration says otherwise. Elsewhere OnLimit counts as it is,
// and without it the turn fails.
func (c *Config) AttendedOnLimit() protocol.OnLimit {
	if c.OnLimit == "" {
		return protocol.OnLimitHold
	}
	return c.OnLimit
}

// Overrides are what this very run says differs from the settings that a
// conversation already has.
func (c *Config) Overrides(now protocol.Settings) protocol.Overrides {
	var o protocol.Overrides
	if c.givenForThisRun("model_provider") {
		o.Provider = new(c.Provider)
	}
	if c.givenForThisRun("model") && c.Model != "" {
		o.Model = new(c.Model)
		if provider, model, ok := c.splitModel(c.Model); ok && o.Provider == nil && !c.hasModel(now.Provider, c.Model) {
			o.Provider, o.Model = new(provider), new(model)
		}
	}
	if c.givenForThisRun("model_reasoning_effort") {
		o.Effort = new(c.Effort)
	}
	if c.givenForThisRun("model_reasoning_summary") {
		o.Summary = new(c.Summary)
	}
	if c.givenForThisRun("approval_policy") {
		o.Approval = new(c.Approval)
	}
	if c.givenForThisRun("on_limit") {
		o.OnLimit = new(c.OnLimit)
	}
	o.Sandbox = c.overrideSandbox(now.Sandbox)
	return o
}

// hasModel reports whether a model may be one of the provider's under its whole name.
// Of a provider that is not in the catalogue nothing is known.
func (c *Config) hasModel(provider, model string) bool {
	if _, known := catalogue.FindProvider(provider); !known {
		return true
	}
	_, ok := c.Catalogue().FindExact(provider, model)
	return ok
}

// overrideSandbox changes the mode with all its details, or single details of
// the mode there is.
func (c *Config) overrideSandbox(now protocol.SandboxPolicy) *protocol.SandboxPolicy {
	if c.givenForThisRun("sandbox_mode") {
		return new(c.Sandbox(c.SandboxMode))
	}
	if now.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	const table = "sandbox_workspace_write."
	changed := false
	given := func(key string) bool {
		yes := c.givenForThisRun(table + key)
		changed = changed || yes
		return yes
	}
	if given("writable_roots") {
		now.WritableRoots = slices.Clone(c.WorkspaceWrite.WritableRoots)
	}
	if given("network_access") {
		now.NetworkAccess = c.WorkspaceWrite.NetworkAccess
	}
	if given("exclude_tmpdir_env_var") {
		now.ExcludeTmpdirEnvVar = c.WorkspaceWrite.ExcludeTmpdirEnvVar
	}
	if given("exclude_slash_tmp") {
		now.ExcludeSlashTmp = c.WorkspaceWrite.ExcludeSlashTmp
	}
	if !changed {
		return nil
	}
	return &now
}

func (c *Config) givenForThisRun(key string) bool {
	kind := c.Source(key).Kind
	return kind >= FromOverride || kind == FromProfile && c.profileGivenForThisRun
}

// Sandbox returns the policy that the configuration has for a mode. The details
// belong to one mode only.
func (c *Config) Sandbox(mode protocol.SandboxMode) protocol.SandboxPolicy {
	p := protocol.SandboxPolicy{Mode: mode}
	if p.Mode != protocol.SandboxWorkspaceWrite {
		return p
	}
	w := c.WorkspaceWrite
	p.WritableRoots = slices.Clone(w.WritableRoots)
	p.NetworkAccess, p.ExcludeTmpdirEnvVar, p.ExcludeSlashTmp = w.NetworkAccess, w.ExcludeTmpdirEnvVar, w.ExcludeSlashTmp
	return p
}

func (c *Config) userText(docs string) string {
	own := strings.TrimSpace(c.UserInstructions)
	if own == "" || docs == "" {
		return own + docs
	}
	return own + "\n\n" + docs
}
