package imports

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// scratch is where databases of other agents are copied to, below the home.
const scratch = "import"

// Open returns an importer for the store of this home, and a directory for copies.
func Open(ctx context.Context, version string) (*Importer, string, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, "", err
	}
	settings, err := store.Settings(home)
	if err != nil {
		return nil, "", err
	}
	return &Importer{
		Store:    store.Open(ctx, store.Place{Home: home, Store: settings, Join: true}),
		Version:  version,
		Settings: settingsOf(home),
	}, filepath.Join(home, scratch), nil
}

// settingsOf returns the settings of imported conversations: those that a new one in the directory would have.
func settingsOf(home string) func(cwd string) p.Settings {
	known := map[string]p.Settings{}
	return func(cwd string) p.Settings {
		if s, ok := known[cwd]; ok {
			return s
		}
		s := p.Settings{Cwd: cwd, Approval: p.ApprovalOnRequest, Sandbox: p.SandboxPolicy{Mode: p.SandboxReadOnly}}
		if cfg, _, err := config.Load(config.Options{Home: home, Cwd: cwd, Env: os.Getenv}); err == nil { // else resume reports it
			choice, _ := cfg.Choose(os.Getenv, func(string) ([]string, bool) { return nil, false }) // else resume chooses
			docs, _ := config.Instructions(cfg.Home, cwd, cfg.ProjectDocMaxBytes, cfg.ProjectDocFallbacks...)
			s = cfg.Settings(choice, cwd, docs.Text)
		}
		known[cwd] = s
		return s
	}
}
