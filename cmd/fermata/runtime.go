package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// runFlags are the flags of everything that runs turns.
type runFlags struct {
	dir     string
	profile string
	config  []string
	typed   config.Flags

	snapshot bool
}

func (f *runFlags) register(fs *pflag.FlagSet) {
	fs.StringVarP(&f.dir, "cd", "C", "", "work in this directory")
	fs.StringVarP(&f.profile, "profile", "p", "", "use this profile of the configuration")
	fs.StringArrayVarP(&f.config, "config", "c", nil, "set a configuration value, key=value")
	fs.BoolVar(&f.snapshot, "snapshot", false, "in a git repository: also show, and let undo put back, what commands change")
	t := &f.typed
	fs.StringVarP(&t.Model, "model", "m", "", "the model to use")
	fs.StringVarP(&t.Sandbox, "sandbox", "s", "", "what commands may touch: read-only, workspace-write, danger-full-access")
	fs.StringVarP(&t.Approval, "ask-for-approval", "a", "", "when to ask: untrusted, on-failure, on-request, never")
	fs.StringArrayVar(&t.AddDirs, "add-dir", nil, "a directory that commands may write to as well")
	fs.BoolVar(&t.FullAuto, "full-auto", false, "ask on failure only, and let commands write to the workspace")
	fs.BoolVar(&t.Bypass, "dangerously-bypass-approvals-and-sandbox", false, "ask nobody, confine nothing")
	fs.BoolVar(&t.Bypass, "yolo", false, "the same as --dangerously-bypass-approvals-and-sandbox")
	fs.BoolVar(&t.OSS, "oss", false, "use a model on this machine")
	fs.BoolVar(&t.Demo, "demo", false, "use the built-in demo model: no key, no network")
}

// loaded is the configuration for some flags.
type loaded struct {
	options  config.Options // its Cwd is the directory to work in
	config   *config.Config
	warnings []config.Warning
}

// load reads the configuration. The warnings are there also with an error.
func (f *runFlags) load() (loaded, error) {
	cwd, err := workdir(f.dir)
	if err != nil {
		return loaded{}, err
	}
	l := loaded{options: config.Options{Cwd: cwd, Env: os.Getenv, Profile: f.profile, Overrides: f.config, Flags: f.typed}}
	l.config, l.warnings, err = config.Load(l.options)
	if err != nil {
		return l, configError(err)
	}
	return l, nil
}

// warn shows the warnings.
func (l loaded) warn(s streams) {
	for _, w := range l.warnings {
		fmt.Fprintf(s.err, "fermata: warning: %v\n", w)
	}
}

// A runtime is an engine and what it runs on.
type runtime struct {
	engine  *engine.Local
	spawner *proc.Spawner
	config  *config.Config
	models  *models
	cwd     string
	base    context.Context
	notify  *notifier

	warnings []config.Warning
}

// runtime puts everything together for running turns.
func (f *runFlags) runtime(ctx context.Context, s streams) (*runtime, error) {
	l, err := f.load()
	l.warn(s)
	if err != nil {
		return nil, err
	}
	spawner, err := proc.NewSpawner()
	if err != nil {
		return nil, fmt.Errorf("prepare for running commands: %w", err)
	}
	m := &models{load: l.options, config: l.config}
	kit := &toolkit{config: l.config, spawner: spawner, models: m}
	if f.snapshot || l.config.Snapshots {
		kit.snapshots = snapshots(l.config.Home)
	}
	notify := &notifier{argv: l.config.Notify}
	e, err := openEngine(ctx, conversation.Config{
		Notify:  notify.ended,
		Window:  func(s p.Settings) int64 { return l.config.Window(s.Provider, s.Model) },
		Model:   m.client,
		Retries: m.retries,
		Tools:   kit.tools,
		Reclaim: tool.Reclaim, Settle: tool.SettlePatch, Instructions: instructions,
	})
	if err != nil {
		return nil, err
	}
	return &runtime{e, spawner, l.config, m, l.options.Cwd, ctx, notify, l.warnings}, nil
}

// A toolkit makes the tools of a turn.
type toolkit struct {
	config  *config.Config
	spawner *proc.Spawner
	models  *models

	snapshots *tool.Snapshots // nil: what commands change is not looked at
}

// snapshots are kept with the conversations, where commands cannot touch them.
func snapshots(home string) *tool.Snapshots {
	return &tool.Snapshots{Dir: filepath.Join(home, "snapshots")}
}

func (k *toolkit) tools(s p.Settings) []tool.Tool {
	changes := &tool.Changes{Snapshots: k.snapshots} // of this turn
	patches := &tool.Patch{Freeform: k.freeform(s), Home: k.config.Home, Changes: changes}
	shell := &tool.Shell{
		Spawner: k.spawner, Timeout: k.config.CommandTimeout, Grace: grace(k.config), Home: k.config.Home,
		Environ: environ(k.config), PIDNamespace: k.config.PIDNamespace, Changes: changes, Patch: patches,
	}
	list := []tool.Tool{shell, patches, tool.Plan{}, &tool.UserShell{Shell: shell}}
	if k.config.UseExecCommandTool { // one of the two, or models mix them up
		list[0] = &tool.Exec{Shell: shell, Set: environSet(k.config)}
		list = append(list, tool.WriteStdin{})
	}
	if k.config.ViewImage {
		list = append(list, tool.ViewImage{})
	}
	return list
}

// freeform reports whether the model takes tools that are held to a grammar.
func (k *toolkit) freeform(s p.Settings) bool {
	if !catalogue.FamilyOf(s.Model).Freeform {
		return false
	}
	choice, err := k.models.chooseFor(s)
	return err == nil && choice.Provider.WireAPI == config.WireResponses
}

// settings are those of a new conversation. from is Settings or ExecSettings of the
// configuration: whether somebody can be asked.
func (r *runtime) settings(from func(config.Choice, string, string) p.Settings) (p.Settings, error) {
	choice, err := r.models.choose("")
	if err != nil {
		return p.Settings{}, configError(err)
	}
	docs, _ := config.Instructions(r.config.Home, r.cwd, r.config.ProjectDocMaxBytes)
	return from(choice, r.cwd, docs.Text), nil
}

// grace is the time between TERM and KILL. To package proc, zero means its own default.
func grace(cfg *config.Config) time.Duration {
	if cfg.StopGrace == 0 {
		return -1
	}
	return cfg.StopGrace
}

// environ is the environment of commands, as the configuration says.
func environ(cfg *config.Config) func() []string {
	pol := envPolicy(cfg)
	return func() []string { return pol.Apply(os.Environ()) }
}

// environSet is the part of it that the configuration sets.
func environSet(cfg *config.Config) []string { return envPolicy(cfg).Apply(nil) }

func envPolicy(cfg *config.Config) policy.EnvPolicy {
	e := cfg.ShellEnvironment
	return policy.EnvPolicy{
		Inherit: policy.Inherit(e.Inherit), KeepSecrets: e.IgnoreDefaultExcludes,
		Exclude: e.Exclude, Set: e.Set, IncludeOnly: e.IncludeOnly,
	}
}

// close stops what runs and leaves nothing behind.
func (r *runtime) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.base), shutdownBound)
	defer cancel()
	_ = r.engine.Shutdown(ctx) // a journal that failed has been reported by the turn's end
	r.spawner.Close()
	r.notify.wait()
}

// configError gives an error of the configuration its hint.
func configError(err error) error {
	e := &exitError{code: exitFailed, err: err}
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong) && wrong.Source.Kind >= config.FromOverride: // the command line says it
		e.code = exitUsage
	case errors.Is(err, config.ErrNoProvider):
		e.hint = "fermata exec --demo PROMPT tries it without a model"
	case errors.Is(err, config.ErrNoHome):
		e.hint = homeHint
	}
	return e
}

// workdir is the directory to work in, with symbolic links resolved, so that a
// directory has one name.
func workdir(dir string) (string, error) {
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", &exitError{
				code: exitFailed, err: fmt.Errorf("find the working directory: %w", err),
				hint: "it may have been deleted: go to another one, or name one with -C",
			}
		}
		dir = wd
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", usage("work in %s: %w", dir, err)
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() {
		return "", usage("work in %s: %w", dir, unix.ENOTDIR)
	}
	return real, nil
}

// instructions are what every model is told first.
const instructions = `You are fermata, a coding agent that works in the user's terminal and repository.

You have tools to run commands, to change files by patches and to show a plan. Look before you change something, and check what you changed.
Keep to what the user asked for. Say briefly what you do and why; end with what you did and what is left.

The user can stop you at any instant. When a turn was stopped you are told so in a <turn_aborted> message, with what was
cut and what it had printed until then; commands that were cut may have had effects, so look before you repeat them.`
