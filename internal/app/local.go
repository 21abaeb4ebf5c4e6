package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	p "github.com/fermata-agent/fermata/protocol"
)

// A OneOffCommand is a command that is run outside of any conversation.
type OneOffCommand struct {
	Argv    []string
	Dir     string             // empty: where we work
	Env     map[string]*string // changes of the environment; nil unsets a variable
	Timeout time.Duration      // 0: that of the configuration
	Sandbox *p.SandboxPolicy   // nil: that of the configuration
}

// A OneOff is how a command ended that was run outside of any conversation.
type OneOff struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

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
func (a *App) RunOnce(ctx context.Context, command OneOffCommand) (OneOff, error) {
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
		return OneOff{}, err
	}
	box, err := sandbox.New(*policy, SandboxPlace(cfg, spec))
	if err != nil {
		return OneOff{}, err
	}
	if err := box.Set(&spec); err != nil {
		return OneOff{}, err
	}
	if spec.Env, err = changeEnv(spec.Env, command.Env); err != nil { // after the sandbox was made: a TMPDIR of the client's opens nothing
		return OneOff{}, err
	}
	res, out, errs := a.run(ctx, spec)
	if res.Err != nil {
		return OneOff{}, fmt.Errorf("run %s: %w", command.Argv[0], res.Err)
	}
	return OneOff{ExitCode: res.ExitCode, Stdout: out, Stderr: errs + unfinished(res, spec.Timeout)}, nil
}

// changeEnv returns an environment with some variables set, and those without a value unset.
func changeEnv(env []string, changes map[string]*string) ([]string, error) {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, changed := changes[name]
		return changed
	})
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("env: %q cannot be the name of a variable", name)
		}
		value := changes[name]
		if value == nil {
			continue
		}
		if strings.Contains(*value, "\x00") {
			return nil, fmt.Errorf("env: the value of %s has a NUL byte", name)
		}
		env = append(env, name+"="+*value)
	}
	return env, nil
}

// unfinished says, as a shell would, why a command did not end by itself: there is no other place
// for it in the answer.
func unfinished(res proc.Result, timeout time.Duration) string {
	switch {
	case res.TimedOut:
		return fmt.Sprintf("timed out after %v\n", timeout)
	case res.Signal != "":
		return "killed by " + res.Signal + "\n"
	}
	return ""
}

// run runs a command to its end, and returns what it printed.
func (a *App) run(ctx context.Context, spec proc.Spec) (res proc.Result, stdout, stderr string) {
	var out [2]capped
	res = a.spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) { out[stream].add(b) })
	return res, out[proc.Stdout].String(), out[proc.Stderr].String()
}

// capped keeps the beginning of what is printed, and says how much more there was.
type capped struct {
	kept bytes.Buffer
	more int
}

const mostOutput = 10 << 20

func (c *capped) add(b []byte) {
	n := min(len(b), mostOutput-c.kept.Len())
	c.kept.Write(b[:n])
	c.more += len(b) - n
}

func (c *capped) String() string {
	text := strings.ToValidUTF8(c.kept.String(), "\uFFFD")
	if c.more > 0 {
		text += fmt.Sprintf("\n… %d more bytes", c.more)
	}
	return text
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
	diff, err := repo.DiffAll(ctx, sha, mostOutput)
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
	return git.Options{Dir: dir, Scratch: filepath.Join(home, "tmp")}
}

// SavedConfig reads what the configuration file says now.
func (a *App) SavedConfig() (SavedConfig, error) {
	saved := SavedConfig{Profiles: map[string]SavedProfile{}}
	file := configPath(a.Config.Home)
	text, err := os.ReadFile(file)
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
