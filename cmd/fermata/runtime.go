package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/demo"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// runFlags are the flags of everything that runs turns.
type runFlags struct {
	dir    string
	model  string
	config []string
	demo   bool
}

func (f *runFlags) register(fs *pflag.FlagSet) {
	fs.StringVarP(&f.dir, "cd", "C", "", "work in this directory")
	fs.StringVarP(&f.model, "model", "m", "", "the model to use")
	fs.StringArrayVarP(&f.config, "config", "c", nil, "set a configuration value, key=value")
	fs.BoolVar(&f.demo, "demo", false, "use the built-in demo model: no key, no network")
}

// A runtime is an engine and what it runs on.
type runtime struct {
	engine   *engine.Local
	spawner  *proc.Spawner
	settings p.Settings // of a new conversation
	base     context.Context
}

// runtime puts everything together for running turns.
func (f *runFlags) runtime(ctx context.Context) (*runtime, error) {
	settings, err := f.settings()
	if err != nil {
		return nil, err
	}
	spawner, err := proc.NewSpawner(proc.Options{})
	if err != nil {
		return nil, fmt.Errorf("prepare for running commands: %w", err)
	}
	tools := []tool.Tool{&tool.Shell{Spawner: spawner}, tool.Plan{}}
	e, err := openEngine(ctx, conversation.Config{
		Model:   client,
		Tools:   func(p.Settings) []tool.Tool { return tools },
		Reclaim: tool.Reclaim, Instructions: instructions,
	})
	if err != nil {
		return nil, err
	}
	return &runtime{e, spawner, settings, ctx}, nil
}

// close stops what runs and leaves nothing behind.
func (r *runtime) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.base), shutdownBound)
	defer cancel()
	_ = r.engine.Shutdown(ctx) // a journal that failed has been reported by the turn's end
	r.spawner.Close()
}

// client returns the model for the settings of a turn.
func client(s p.Settings) (model.Client, error) {
	if s.Provider == "demo" {
		return demo.New(), nil
	}
	return nil, &p.Error{
		Kind: p.ErrorAuth, Message: fmt.Sprintf("no such model provider: %q", s.Provider),
		Hint: "--demo uses the built-in demo model",
	}
}

func (f *runFlags) settings() (p.Settings, error) {
	for _, kv := range f.config {
		if key, _, ok := strings.Cut(kv, "="); !ok || strings.TrimSpace(key) == "" {
			return p.Settings{}, usage("-c %s: not of the form key=value", kv)
		}
	}
	dir, err := f.workdir()
	if err != nil {
		return p.Settings{}, err
	}
	s := p.Settings{
		Cwd: dir, Approval: p.ApprovalNever, Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess},
	}
	return f.overrides().Apply(s), nil
}

var errNoModel = &exitError{
	code: exitFailed, err: errors.New("no model is configured"),
	hint: "--demo uses the built-in demo model: no key, no network",
}

// overrides are the settings that flags change.
func (f *runFlags) overrides() *p.Overrides {
	var o p.Overrides
	set := func(to **string, value string) { *to = &value }
	for _, kv := range f.config {
		key, value, _ := strings.Cut(kv, "=")
		value = strings.Trim(value, `"`)
		switch strings.TrimSpace(key) {
		case "model_provider":
			set(&o.Provider, value)
		case "model":
			set(&o.Model, value)
		}
	}
	if f.demo {
		set(&o.Provider, "demo")
		set(&o.Model, demo.Model)
	}
	if f.model != "" {
		set(&o.Model, f.model)
	}
	if f.dir != "" {
		if dir, err := f.workdir(); err == nil {
			set(&o.Cwd, dir)
		}
	}
	return &o
}

// workdir is the directory to work in, with symbolic links resolved, so that a
// directory has one name.
func (f *runFlags) workdir() (string, error) {
	dir := f.dir
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the working directory: %w", err)
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

You have tools to run commands and to show a plan. Look before you change something, and check what you changed.
Keep to what the user asked for. Say briefly what you do and why; end with what you did and what is left.

The user can stop you at any instant. When a turn was stopped you are told so in a <turn_aborted> message, with what was
cut and what it had printed until then; commands that were cut may have had effects, so look before you repeat them.`
