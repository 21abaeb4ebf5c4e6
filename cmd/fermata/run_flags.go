package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// runFlags are the flags of everything that runs turns.
type runFlags struct {
	dir     string
	profile string
	config  []string
	typed   config.Flags

	snapshot bool
	detach   bool

	detachable bool // the setting detach counts
	serve      bool
	client     string // the command, for those that are joined
	strict     bool
	limits     app.LimitOptions
}

// registerConfig adds the flags that choose a configuration.
func (f *runFlags) registerConfig(fs *pflag.FlagSet) {
	fs.StringVarP(&f.dir, "cd", "C", "", "work in `DIR`")
	fs.StringVarP(&f.profile, "profile", "p", "", "use profile `NAME` of the configuration")
	fs.StringArrayVarP(&f.config, "config", "c", nil, "set a configuration value, as `KEY=VALUE`; may be repeated")
}

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.registerConfig(fs)
	fs.BoolVar(&f.snapshot, "snapshot", false, "in a git repository: record what commands change, so that undo can restore it")
	fs.BoolVar(&f.strict, "strict-config", false, "fail if the configuration gives a warning")
	t := &f.typed
	fs.StringVarP(&t.Model, "model", "m", "", "use this `MODEL`")
	fs.StringVarP(&t.Sandbox, "sandbox", "s", "", "what commands may touch, `MODE`: read-only, workspace-write, danger-full-access")
	fs.StringVarP(&t.Approval, "ask-for-approval", "a", "", "when to ask for approval, `POLICY`: untrusted, on-failure, on-request, never")
	fs.StringArrayVar(&t.AddDirs, "add-dir", nil, "let commands write to `DIR` as well; may be repeated")
	fs.BoolVar(&t.FullAuto, "full-auto", false, "same as -a on-failure -s workspace-write")
	fs.BoolVar(&t.Bypass, "dangerously-bypass-approvals-and-sandbox", false, "never ask, and run commands without a sandbox")
	fs.BoolVar(&t.Bypass, "yolo", false, "same as --dangerously-bypass-approvals-and-sandbox")
	fs.BoolVar(&t.OSS, "oss", false, "use a local model (Ollama)")
	fs.BoolVar(&t.Demo, "demo", false, "use the built-in demo model, which needs no key and no network")
}

// registerLimits adds the flags of servers: what no client may exceed.
func (f *runFlags) registerLimits(fs *pflag.FlagSet) {
	l := &f.limits
	l.Clients = true
	fs.StringVar(&l.MaxSandbox, "max-sandbox", "", "allow clients no more than this sandbox `mode`, also for commands that they approve")
	fs.StringVar(&l.MinApproval, "min-approval", "", "allow clients no approval `policy` that asks less than this one")
	fs.StringArrayVar(&l.Providers, "allow-provider", nil, "allow clients only this model `provider`, as it is configured; may be repeated")
	fs.StringArrayVar(&l.Keys, "allow-key-variable", nil, "allow providers that clients define only the key in this `variable`; may be repeated")
	fs.StringArrayVar(&l.Dirs, "allow-dir", nil, "allow clients to work only in this `directory` and below; may be repeated")
	fs.BoolVar(&l.ShareKey, "share-key", false, "give the provider's key to clients that ask for it (getAuthStatus)")
}

// options are what the flags say to package app.
func (f *runFlags) options(s streams) app.Options {
	return app.Options{
		Dir: f.dir, Profile: f.profile, Overrides: f.config, Flags: f.typed, Strict: f.strict, Snapshots: f.snapshot, Detach: f.detach, Detachable: f.detachable, Serve: f.serve, Client: f.client, Version: version(), Limits: f.limits,
		Warn: func(w config.Warning) { warn(s, w) },
	}
}

// load reads the configuration. The warnings are there also with an error.
func (f *runFlags) load(s streams) (app.Loaded, error) { return app.Load(f.options(s)) }

func warn(s streams, w config.Warning) { fmt.Fprintf(s.err, "fermata: warning: %v\n", w) }

// openApp opens what turns are run with.
func (f *runFlags) openApp(ctx context.Context, s streams) (*app.App, error) {
	return app.Open(ctx, f.options(s))
}

// find opens the conversations and finds one by its name.
func find(ctx context.Context, name string) (*remote.Choosing, p.ConversationID, error) {
	e, err := app.OpenStore(ctx, version())
	if err != nil {
		return nil, "", err
	}
	id, err := app.Find(ctx, e, name)
	return e, id, err
}
