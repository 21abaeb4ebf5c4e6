package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A ConfigView is the configuration as clients may see it: what may be a secret is masked.
type ConfigView struct {
	File     string // the configuration file, there or not
	Settings []ConfigSetting
	Trust    string // what was said of the directory that was asked for; empty: nothing
}

// A ConfigSetting is a key of the configuration with its value and where it comes from.
type ConfigSetting = config.Setting

// The places that a setting comes from.
const (
	FromDefault = config.FromDefault
	FromFile    = config.FromFile
	FromProfile = config.FromProfile
)

// configPath is the configuration file of a home.
func configPath(home string) string { return filepath.Join(home, config.FileName) }

// ViewConfig returns the configuration that a new conversation in a directory would begin with.
func (a *App) ViewConfig(cwd string) (ConfigView, error) {
	load := a.Models.load
	load.Cwd = a.place(cwd)
	cfg, _, err := config.Load(load)
	if err != nil {
		return ConfigView{}, fmt.Errorf("configuration: %w", err)
	}
	return ConfigView{File: configPath(a.Config.Home), Settings: cfg.All(), Trust: string(a.Projects.Trust(load.Cwd))}, nil
}

// savedKeys are the keys that a client may save: which model new conversations begin with. What
// starts programs or decides what they may do is left to the person.
var savedKeys = []string{"model", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity"}

// SaveConfig changes the configuration file for a client. It returns the file's name.
func (a *App) SaveConfig(edits ...ConfigEdit) (string, error) {
	for _, e := range edits {
		if key := strings.Join(e.Path, "."); !slices.Contains(savedKeys, key) {
			return "", fmt.Errorf("%s cannot be saved by a client, only %s can: edit config.toml", key, strings.Join(savedKeys, ", "))
		}
	}
	return configPath(a.Config.Home), EditConfig(a.Config.Home, edits...)
}

// Limits decides what clients may raise.
func (a *App) Limits() limits.Limiter { return a.limits }

// Allowed are the sandbox modes and the approval policies that conversations may have here;
// nil allows all.
func (a *App) Allowed() ([]p.SandboxMode, []p.ApprovalPolicy) {
	return a.limits.Sandbox, a.limits.Approval
}
