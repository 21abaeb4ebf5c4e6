package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app/configfile"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A SettingsRequest is what a client asks for a conversation to be run with. A zero
// field leaves it to the configuration.
type SettingsRequest struct {
	Model                 string         `json:"model,omitempty"`
	Profile               string         `json:"profile,omitempty" doc:"a profile of the configuration"`
	Cwd                   string         `json:"cwd,omitempty" doc:"where to work; relative to where the server runs"`
	ApprovalPolicy        string         `json:"approvalPolicy,omitempty" enum:"untrusted,on-failure,on-request,never"`
	Sandbox               string         `json:"sandbox,omitempty" enum:"read-only,workspace-write,danger-full-access"`
	Config                map[string]any `json:"config,omitempty" doc:"configuration values by dotted key"`
	BaseInstructions      string         `json:"baseInstructions,omitempty" doc:"instead of the built-in instructions"`
	IncludePlanTool       bool           `json:"includePlanTool,omitempty" doc:"makes no difference: the model always has it"`
	IncludeApplyPatchTool bool           `json:"includeApplyPatchTool,omitempty" doc:"makes no difference: the model always has it"`

	Interactive bool `json:"-"` // a user is there: a directory that they trust is treated as in the terminal UI
}

// NewSettings are those of a new conversation. from is Settings or ExecSettings of the
// configuration: whether a client can be asked.
func (a *App) NewSettings(from func(config.Choice, string, string) p.Settings) (p.Settings, error) {
	choice, err := a.Models.Choose("")
	if err != nil {
		return p.Settings{}, configError(err)
	}
	docs, _ := config.Instructions(a.Config.Home, a.Cwd, a.Config.ProjectDocMaxBytes, a.Config.ProjectDocFallbacks...) // Open has warned
	s := from(choice, a.Cwd, withSkills(docs.Text, a.Config.Home, a.Cwd))
	if s.Provider != config.Demo && (a.MadeCwd || a.Projects.Trust(a.Cwd) == project.Trusted) { // perhaps since we were started
		s.Sandbox = a.Config.TrustedSandbox()
	}
	s, _, err = a.limits.Settle(s, a.Config.Overrides(p.Settings{}))
	s.Environment = environment(a.base, a.Config.Home, s)
	s.ContextWindow = a.Models.window(s)
	a.warnOfUnknown(s)
	return s, err
}

// AsksTrust reports whether a person who starts in a directory is to be asked whether it is
// trusted: nothing is known of it, and the configuration does not say what may be
// written. The demo model needs no trust. Answer with Projects.SetTrust.
func (a *App) AsksTrust(dir, provider string) bool {
	return provider != config.Demo && a.Projects.Trust(dir) == "" && a.Config.Source("sandbox_mode").Kind == config.FromDefault
}

// A ConfigEdit changes one key or table of the configuration file.
type ConfigEdit = configfile.Edit

// EditConfig is configfile.Apply.
func EditConfig(home string, edits ...ConfigEdit) error { return configfile.Apply(home, edits...) }

// Settings makes what a client asks for settings: what it names counts, and for the rest what we were
// started with.
func (a *App) Settings(req SettingsRequest) (p.Settings, []string, error) {
	load := a.Models.load
	load.Cwd = a.place(req.Cwd)
	named, warnings, err := a.named(req, load.Cwd)
	if err != nil {
		return p.Settings{}, nil, err
	}
	load.Profile = cmp.Or(req.Profile, load.Profile)
	load.Overrides = append(slices.Clone(load.Overrides), overrides(req)...)
	prefer(&load.Flags, named.Overrides(p.Settings{}))
	cfg, _, err := config.Load(load)
	if err != nil {
		return p.Settings{}, nil, fmt.Errorf("configuration: %w", err)
	}
	choice, err := cfg.Choose(a.Models.env, Probe)
	if err != nil {
		return p.Settings{}, nil, err
	}
	defined := providerOverrides(req)
	if err := a.limits.AllowProvider(choice.Provider, defined); err != nil {
		return p.Settings{}, nil, err
	}
	docs, more := config.Instructions(cfg.Home, load.Cwd, cfg.ProjectDocMaxBytes, cfg.ProjectDocFallbacks...)
	s := cfg.Settings(choice, load.Cwd, withSkills(docs.Text, cfg.Home, load.Cwd))
	if req.BaseInstructions != "" {
		s.Instructions = req.BaseInstructions
	}
	if req.Interactive && s.Provider != config.Demo && a.Projects.Trust(load.Cwd) == project.Trusted {
		s.Sandbox = cfg.TrustedSandbox()
	}
	remarks := ineffective(req, processWide, warnings)
	for _, w := range more {
		remarks = append(remarks, w.String())
	}
	s, notes, err := a.limits.Settle(s, named.Overrides(p.Settings{}))
	if err != nil {
		return p.Settings{}, nil, err
	}
	s.Environment = environment(a.base, a.Config.Home, s)
	s.Provider, err = a.Models.define(s.Provider, defined)
	a.warnOfUnknown(s)
	return s, append(remarks, notes...), err
}

// Change makes what a client asks for changes of a conversation. Only what the client names
// counts: what we were started with was for conversations that we begin.
func (a *App) Change(now p.Settings, req SettingsRequest) (p.Overrides, []string, error) {
	if req.BaseInstructions != "" {
		return p.Overrides{}, nil, errors.New("the instructions of a conversation cannot be changed after it has started")
	}
	named, warnings, err := a.named(req, now.Cwd)
	if err != nil {
		return p.Overrides{}, nil, err
	}
	o := named.Overrides(now)
	if req.Cwd != "" {
		o.Cwd = new(a.place(req.Cwd))
	}
	if defined := providerOverrides(req); o.Provider != nil || len(defined) > 0 {
		name := now.Provider
		if o.Provider != nil {
			name = *o.Provider
		}
		if name, err = a.Models.define(name, defined); err != nil {
			return o, nil, err
		}
		o.Provider = &name
		choice, err := a.Models.chooseFor(o.Apply(now))
		if err != nil {
			return o, nil, err
		}
		if err := a.limits.AllowProvider(choice.Provider, defined); err != nil {
			return o, nil, err
		}
	}
	if err := a.limits.Allow(o.Apply(now)); err != nil {
		return o, nil, err
	}
	return o, ineffective(req, append(slices.Clone(processWide), onceOnly...), warnings), nil
}

// named is the configuration with what a client names, and without what we were started with.
func (a *App) named(req SettingsRequest, cwd string) (*config.Config, []config.Warning, error) {
	cfg, warnings, err := config.Load(config.Options{
		Home: a.Config.Home, Cwd: cwd, Env: os.Getenv, Profile: req.Profile, Overrides: overrides(req),
		Flags: config.Flags{Model: req.Model, Approval: req.ApprovalPolicy, Sandbox: req.Sandbox},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	return cfg, warnings, nil
}

// prefer makes flags of what a client names in whatever way: nothing else is stronger than our own.
func prefer(f *config.Flags, named p.Overrides) {
	if named.Model != nil {
		f.Model = *named.Model
	}
	if named.Provider != nil {
		f.Provider = *named.Provider
	}
	if named.Approval != nil {
		f.Approval = string(*named.Approval)
	}
	if named.Sandbox != nil {
		f.Sandbox = string(named.Sandbox.Mode)
	}
}

// overrides are the configuration values of a request, in order.
func overrides(req SettingsRequest) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(req.Config)) {
		list = append(list, config.Override(key, req.Config[key]))
	}
	return list
}

// Keys that a request can name in vain: processWide is the same for all that a process runs,
// onceOnly is settled when a conversation begins.
var (
	processWide = []string{
		"shell_environment_policy", "command_timeout_ms", "stop_grace_ms", "max_parallel_calls", "mcp_servers", "notify", "history", "tools",
		"experimental_use_exec_command_tool", "model_max_output_tokens",
	}
	onceOnly = []string{
		"model_verbosity", "model_context_window", "instructions", "developer_instructions", "model_instructions_file", "experimental_instructions_file", "project_doc_max_bytes",
		"project_doc_fallback_filenames",
	}
)

// ineffective says which values of a request have no effect: those of the given keys, and those
// that there were warnings about.
func ineffective(req SettingsRequest, keys []string, warnings []config.Warning) []string {
	var remarks []string
	for _, key := range slices.Sorted(maps.Keys(req.Config)) {
		if first, _, _ := strings.Cut(key, "."); slices.Contains(keys, first) {
			remarks = append(remarks, fmt.Sprintf("config: %s has no effect here: set it where the server is started, with -c", key))
		}
	}
	for _, about := range warnings { // of the file people were warned when we started
		if about.Source.Kind == config.FromOverride {
			remarks = append(remarks, fmt.Sprintf("config: %s: %s", about.Key, about.Text))
		}
	}
	return remarks
}

// place returns a directory as a client names it.
func (a *App) place(cwd string) string {
	switch {
	case cwd == "":
		return a.Cwd
	case filepath.IsAbs(cwd):
		return resolveDir(filepath.Clean(cwd))
	}
	return resolveDir(filepath.Join(a.Cwd, cwd))
}

// resolveDir resolves symbolic links if dir exists. If not, only what is to run there
// fails.
func resolveDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
