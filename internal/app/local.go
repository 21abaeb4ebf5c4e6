package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/app/configfile"
	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A RemoteDiff is the difference of a working tree to what a remote has.
type RemoteDiff struct {
	SHA  string `json:"sha"`
	Diff string `json:"diff"`
}

// RunOnce runs a command outside of any conversation.
func (a *App) RunOnce(ctx context.Context, command oneoff.Command) (oneoff.Result, error) {
	cfg, dir := a.Config, a.place(command.Dir)
	spec := proc.Spec{
		Argv: command.Argv, Dir: dir, Env: Environ(cfg, a.Models.keyVariables()...), Timeout: cmp.Or(command.Timeout, cfg.CommandTimeout),
	}
	policy := command.Sandbox
	if policy == nil {
		asked, _ := a.limits.Clamp(cfg.Settings(config.Choice{}, dir, ""))
		policy = &asked.Sandbox
	}
	if err := errors.Join(a.limits.CheckDir(dir), a.limits.CheckSandbox(*policy)); err != nil {
		return oneoff.Result{}, err
	}
	box, err := sandbox.New(*policy, SandboxPlace(cfg, spec))
	if err != nil {
		return oneoff.Result{}, err
	}
	if err := box.Set(&spec); err != nil {
		return oneoff.Result{}, err
	}
	return oneoff.Run(ctx, a.spawner, spec, command)
}

// gitTime is how long a comparison may take.
const gitTime = 30 * time.Second

// DiffToRemote compares a working tree with the newest commit of its own history
// that a remote has. Nothing is fetched.
func (a *App) DiffToRemote(ctx context.Context, cwd string) (RemoteDiff, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, fmt.Errorf("git took longer than %v", gitTime))
	defer cancel()
	dir := a.place(cwd)
	if err := a.limits.CheckDir(dir); err != nil {
		return RemoteDiff{}, err
	}
	repo, err := OpenGit(ctx, a.Config.Home, dir)
	if err != nil {
		return RemoteDiff{}, err
	}
	defer repo.Close()
	sha, err := repo.RemoteBase(ctx)
	if err != nil {
		return RemoteDiff{}, err
	}
	diff, err := repo.DiffAll(ctx, sha, oneoff.MaxOutput)
	if errors.Is(err, git.ErrTooMuch) {
		diff += "\n… the rest of this diff is left out\n"
	} else if err != nil {
		return RemoteDiff{}, err
	}
	return RemoteDiff{SHA: sha, Diff: strings.ToValidUTF8(diff, "\uFFFD")}, nil
}

// OpenGit opens the repository that a directory is in. The caller closes it. What
// git needs while it runs is in the home, where commands cannot write.
func OpenGit(ctx context.Context, home, dir string) (*git.Repo, error) {
	return git.Open(ctx, gitOptions(home, dir))
}

func gitOptions(home, dir string) git.Options {
	return git.Options{Dir: dir, Scratch: filepath.Join(home, "tmp"), Without: secrets.Home(home).Registered()}
}

// SavedConfig reads what the configuration file says now.
func (a *App) SavedConfig() (SavedConfig, error) { return configfile.ReadSaved(a.Config.Home) }

// SavedConfig is configfile.Saved.
type SavedConfig = configfile.Saved

// Key reports whether there is a key for the provider that conversations begin
// with, and what it is, if clients may know.
func (a *App) Key() (key string, ok bool) {
	choice, err := a.Models.Choose("")
	if err != nil || choice.Key.Reveal() == "" {
		return "", false
	}
	if !a.limits.ShareKey {
		return "", true
	}
	return choice.Key.Reveal(), true
}

// SandboxPlace is where a command that the user wants runs: its directory is the
// user's choice.
func SandboxPlace(cfg *config.Config, spec proc.Spec) sandbox.Place {
	return sandbox.Place{
		Cwd: spec.Dir, Home: cfg.Home, OtherHomes: config.Homes(os.Getenv), Guarded: guarded(cfg, cfg.MCPServers, spec.Dir), Secrets: cfg.SecretFiles(),
		Env: spec.Env, PIDNamespace: cfg.PIDNamespace,
	}
}
