package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/config"
)

// RunFlags are the flags of everything that runs turns.
type RunFlags struct {
	Dir     string
	Profile string
	Config  []string // KEY=VALUE
	Typed   config.Flags

	Snapshot bool
	Detach   bool

	Detachable bool // the setting detach counts
	Serve      bool
	Client     string // the command, for those that are joined
	Strict     bool
	Limits     limits.Options
	Member     app.Member // of a fleet
	Watch      app.TurnWatch
}

// RegisterConfig adds the flags that choose a configuration.
func (f *RunFlags) RegisterConfig(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Dir, "cd", "C", "", "work in `DIR`")
	fs.StringVarP(&f.Profile, "profile", "p", "", "use profile `NAME` of the configuration")
	fs.StringArrayVarP(&f.Config, "config", "c", nil, "set a configuration value, as `KEY=VALUE`; may be repeated")
}

// Register adds all flags.
func (f *RunFlags) Register(fs *pflag.FlagSet) {
	f.RegisterConfig(fs)
	f.RegisterModel(fs)
	fs.BoolVar(&f.Snapshot, "snapshot", false, "in a git repository: record what commands change, so that undo can restore it")
	t := &f.Typed
	fs.StringVarP(&t.Sandbox, "sandbox", "s", "", "what commands may touch, `MODE`: read-only, workspace-write, danger-full-access")
	fs.StringVarP(&t.Approval, "ask-for-approval", "a", "", "when to ask for approval, `POLICY`: untrusted, on-failure, on-request, never")
	fs.StringArrayVar(&t.AddDirs, "add-dir", nil, "let commands write to `DIR` as well; may be repeated")
	fs.BoolVar(&t.FullAuto, "full-auto", false, "same as -a on-failure -s workspace-write")
	fs.BoolVar(&t.Bypass, "dangerously-bypass-approvals-and-sandbox", false, "never ask, and run commands without a sandbox")
	fs.BoolVar(&t.Bypass, "yolo", false, "same as --dangerously-bypass-approvals-and-sandbox")
}

// RegisterModel adds the flags that choose a model.
func (f *RunFlags) RegisterModel(fs *pflag.FlagSet) {
	t := &f.Typed
	fs.StringVarP(&t.Model, "model", "m", "", "use this `MODEL`")
	fs.BoolVar(&t.OSS, "oss", false, "use a local model (Ollama)")
	fs.BoolVar(&t.Demo, "demo", false, "use the built-in demo model, which needs no key and no network")
	fs.BoolVar(&f.Strict, "strict-config", false, "fail if the configuration gives a warning")
}

// RegisterLimits adds the flags of servers: what no client may exceed.
func (f *RunFlags) RegisterLimits(fs *pflag.FlagSet) {
	l := &f.Limits
	l.Clients = true
	fs.StringVar(&l.MaxSandbox, "max-sandbox", "", "allow clients no more than this sandbox `MODE`, also for commands that they approve")
	fs.StringVar(&l.MinApproval, "min-approval", "", "allow clients no approval `POLICY` that asks less than this one")
	fs.StringArrayVar(&l.Providers, "allow-provider", nil, "allow clients only this model `PROVIDER`, as it is configured; may be repeated")
	fs.StringArrayVar(&l.Keys, "allow-key-variable", nil, "allow providers that clients define only the key in this `VARIABLE`; may be repeated")
	fs.StringArrayVar(&l.Dirs, "allow-dir", nil, "allow clients to work only in this `DIR` and below; may be repeated")
}

// RegisterShareKey adds the flag of servers whose clients can ask for the key.
func (f *RunFlags) RegisterShareKey(fs *pflag.FlagSet) {
	fs.BoolVar(&f.Limits.ShareKey, "share-key", false, "give the provider's key to clients that ask for it (getAuthStatus)")
}

// options are what the flags say to package app.
func (f *RunFlags) options(s Streams) app.Options {
	return app.Options{
		Dir: f.Dir, Profile: f.Profile, Overrides: f.Config, Flags: f.Typed, Strict: f.Strict, Snapshots: f.Snapshot, Detach: f.Detach, Detachable: f.Detachable, Serve: f.Serve, Client: f.Client, Version: Version(), Limits: f.Limits, Member: f.Member, Watch: f.Watch,
		Warn: func(w config.Warning) { Warn(s, w) },
	}
}

// Load reads the configuration. The warnings are there also with an error.
func (f *RunFlags) Load(s Streams) (app.Loaded, error) { return app.Load(f.options(s)) }

// Warn prints a warning of the configuration.
func Warn(s Streams, w config.Warning) { fmt.Fprintf(s.Err, "fermata: %s: %v\n", w.Level(), w) }

// Open opens what turns are run with.
func (f *RunFlags) Open(ctx context.Context, s Streams) (*app.App, error) {
	return app.Open(ctx, f.options(s))
}
