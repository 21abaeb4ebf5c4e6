package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver"
	p "github.com/fermata-agent/fermata/protocol"
)

// local answers clients' questions about this machine.
type local struct{ r *runtime }

// within is a directory as a client names it.
func (l local) within(cwd string) string {
	if filepath.IsAbs(cwd) {
		return filepath.Clean(cwd)
	}
	return filepath.Join(l.r.cwd, cwd)
}

// RunOnce runs a command outside of any conversation.
func (l local) RunOnce(ctx context.Context, command []string, cwd string, timeout time.Duration, policy *p.SandboxPolicy) (mcpserver.OneOff, error) {
	cfg, dir := l.r.config, l.within(cwd)
	spec := proc.Spec{Argv: command, Dir: dir, Env: environ(cfg)(), Timeout: timeout}
	if timeout == 0 {
		spec.Timeout = cfg.CommandTimeout
	}
	if policy == nil {
		policy = new(cfg.Settings(config.Choice{}, dir, "").Sandbox)
	}
	box, err := sandbox.New(*policy, sandbox.Place{Cwd: dir, Home: cfg.Home, Env: spec.Env})
	if err != nil {
		return mcpserver.OneOff{}, err
	}
	if err := box.Set(&spec); err != nil {
		return mcpserver.OneOff{}, err
	}
	var out, errs capped
	res := l.r.spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) {
		if stream == proc.Stderr {
			errs.add(b)
			return
		}
		out.add(b)
	})
	if res.Err != nil {
		return mcpserver.OneOff{}, fmt.Errorf("run %s: %w", command[0], res.Err)
	}
	return mcpserver.OneOff{ExitCode: res.ExitCode, Stdout: out.String(), Stderr: errs.String()}, nil
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

// gitTime is how long one run of git may take.
const gitTime = 30 * time.Second

var errNoRemote = errors.New("no remote branch is known")

// DiffToRemote compares a working tree with the newest commit of its own history
// that a remote has. Nothing is fetched.
func (l local) DiffToRemote(ctx context.Context, cwd string) (mcpserver.RemoteDiff, error) {
	dir := l.within(cwd)
	sha := ""
	for _, ref := range []string{"@{upstream}", "refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master"} {
		if out, err := l.git(ctx, dir, 0, "merge-base", "HEAD", ref); err == nil {
			sha = strings.TrimSpace(out)
			break
		}
	}
	if sha == "" {
		return mcpserver.RemoteDiff{}, errNoRemote
	}
	diff, err := l.git(ctx, dir, 0, "diff", "--no-ext-diff", "--no-textconv", sha)
	if err != nil {
		return mcpserver.RemoteDiff{}, err
	}
	untracked, err := l.git(ctx, dir, 0, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return mcpserver.RemoteDiff{}, err
	}
	for _, name := range strings.Split(strings.TrimSuffix(untracked, "\x00"), "\x00") {
		if name == "" {
			continue
		}
		// Files that differ are exit code 1 here.
		added, err := l.git(ctx, dir, 1, "diff", "--no-ext-diff", "--no-textconv", "--no-index", "--", "/dev/null", name)
		if err != nil {
			return mcpserver.RemoteDiff{}, err
		}
		diff += added
	}
	return mcpserver.RemoteDiff{SHA: sha, Diff: diff}, nil
}

// git runs git with nothing of the repository's own to run; codes up to fine are no error.
func (l local) git(ctx context.Context, dir string, fine int, args ...string) (string, error) {
	argv := append([]string{"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	spec := proc.Spec{Argv: argv, Dir: dir, Env: append(environ(l.r.config)(), "GIT_OPTIONAL_LOCKS=0"), Timeout: gitTime}
	var out, errs capped
	res := l.r.spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) {
		if stream == proc.Stderr {
			errs.add(b)
			return
		}
		out.add(b)
	})
	switch {
	case res.Err != nil:
		return "", fmt.Errorf("git %s: %w", args[0], res.Err)
	case res.ExitCode < 0 || res.ExitCode > fine:
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// SavedConfig gives what the configuration file says.
func (l local) SavedConfig() mcpserver.SavedConfig {
	cfg := l.r.config
	saved := mcpserver.SavedConfig{Profiles: map[string]any{}}
	for key, field := range map[string]struct {
		to    *string
		value string
	}{
		"approval_policy":         {&saved.ApprovalPolicy, string(cfg.Approval)},
		"sandbox_mode":            {&saved.SandboxMode, string(cfg.SandboxMode)},
		"model":                   {&saved.Model, cfg.Model},
		"model_reasoning_effort":  {&saved.Effort, cfg.Effort},
		"model_reasoning_summary": {&saved.Summary, cfg.Summary},
		"model_verbosity":         {&saved.Verbosity, cfg.Verbosity},
		"profile":                 {&saved.Profile, cfg.Profile},
	} {
		if cfg.Source(key).Kind == config.FromFile {
			*field.to = field.value
		}
	}
	for _, key := range []string{"writable_roots", "network_access", "exclude_tmpdir_env_var", "exclude_slash_tmp"} {
		if w := cfg.WorkspaceWrite; cfg.Source("sandbox_workspace_write."+key).Kind == config.FromFile {
			saved.SandboxSettings = &mcpserver.SavedSandbox{
				WritableRoots: append([]string{}, w.WritableRoots...), NetworkAccess: w.NetworkAccess,
				ExcludeTmpdirEnvVar: w.ExcludeTmpdirEnvVar, ExcludeSlashTmp: w.ExcludeSlashTmp,
			}
		}
	}
	return saved
}
