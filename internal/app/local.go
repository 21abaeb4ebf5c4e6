package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A RemoteDiff is the difference of a working tree to what a remote has.
type RemoteDiff struct {
	SHA  string `json:"sha"`
	Diff string `json:"diff"`
}

// A SavedConfig is what the configuration file says, as far as clients know it. The
// file's names are beside theirs.
type SavedConfig struct {
	ApprovalPolicy  string                  `json:"approvalPolicy,omitempty" toml:"approval_policy"`
	SandboxMode     string                  `json:"sandboxMode,omitempty" toml:"sandbox_mode"`
	SandboxSettings *SavedSandbox           `json:"sandboxSettings,omitempty" toml:"sandbox_workspace_write"`
	Model           string                  `json:"model,omitempty" toml:"model"`
	Effort          string                  `json:"modelReasoningEffort,omitempty" toml:"model_reasoning_effort"`
	Summary         string                  `json:"modelReasoningSummary,omitempty" toml:"model_reasoning_summary"`
	Verbosity       string                  `json:"modelVerbosity,omitempty" toml:"model_verbosity"`
	Tools           *SavedTools             `json:"tools,omitempty" toml:"tools"`
	Profile         string                  `json:"profile,omitempty" toml:"profile"`
	Profiles        map[string]SavedProfile `json:"profiles" toml:"profiles"`
}

// A SavedSandbox is what the file says about the sandbox mode workspace-write.
type SavedSandbox struct {
	WritableRoots       []string `json:"writableRoots" toml:"writable_roots"`
	NetworkAccess       *bool    `json:"networkAccess,omitempty" toml:"network_access"`
	ExcludeTmpdirEnvVar *bool    `json:"excludeTmpdirEnvVar,omitempty" toml:"exclude_tmpdir_env_var"`
	ExcludeSlashTmp     *bool    `json:"excludeSlashTmp,omitempty" toml:"exclude_slash_tmp"`
}

// SavedTools is what the file says about tools.
type SavedTools struct {
	WebSearch *bool `json:"webSearch,omitempty" toml:"web_search"`
	Request   *bool `json:"-" toml:"web_search_request"` // an older name of it
	ViewImage *bool `json:"viewImage,omitempty" toml:"view_image"`
}

// A SavedProfile is a profile of the file.
type SavedProfile struct {
	Model          string `json:"model,omitempty" toml:"model"`
	ModelProvider  string `json:"modelProvider,omitempty" toml:"model_provider"`
	ApprovalPolicy string `json:"approvalPolicy,omitempty" toml:"approval_policy"`
	Effort         string `json:"modelReasoningEffort,omitempty" toml:"model_reasoning_effort"`
	Summary        string `json:"modelReasoningSummary,omitempty" toml:"model_reasoning_summary"`
	Verbosity      string `json:"modelVerbosity,omitempty" toml:"model_verbosity"`
	ChatGPTBaseURL string `json:"chatgptBaseUrl,omitempty" toml:"chatgpt_base_url"`
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
func (a *App) SavedConfig() (SavedConfig, error) {
	saved := SavedConfig{Profiles: map[string]SavedProfile{}}
	file := configPath(a.Config.Home)
	text, err := regular.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, fmt.Errorf("read the configuration: %w", err)
	}
	if err := toml.Unmarshal(text, &saved); err != nil {
		return saved, fmt.Errorf("read %s: %w", file, err)
	}
	if s := saved.SandboxSettings; s != nil && s.WritableRoots == nil {
		s.WritableRoots = []string{}
	}
	if t := saved.Tools; t != nil && t.WebSearch == nil {
		t.WebSearch = t.Request
	}
	return saved, nil
}

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
