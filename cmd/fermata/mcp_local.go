package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver"
	p "github.com/fermata-agent/fermata/protocol"
)

// local answers clients' questions about this machine.
type local struct{ r *runtime }

// RunOnce runs a command outside of any conversation.
func (l local) RunOnce(ctx context.Context, command []string, cwd string, timeout time.Duration, policy *p.SandboxPolicy) (mcpserver.OneOff, error) {
	cfg, dir := l.r.config, l.r.place(cwd)
	spec := proc.Spec{Argv: command, Dir: dir, Env: environ(cfg)(), Timeout: timeout}
	if timeout == 0 {
		spec.Timeout = cfg.CommandTimeout
	}
	if policy == nil {
		policy = new(cfg.Settings(config.Choice{}, dir, "").Sandbox)
	}
	box, err := sandbox.New(*policy, sandboxPlace(cfg, spec))
	if err != nil {
		return mcpserver.OneOff{}, err
	}
	if err := box.Set(&spec); err != nil {
		return mcpserver.OneOff{}, err
	}
	res, out, errs := l.run(ctx, spec)
	if res.Err != nil {
		return mcpserver.OneOff{}, fmt.Errorf("run %s: %w", command[0], res.Err)
	}
	return mcpserver.OneOff{ExitCode: res.ExitCode, Stdout: out, Stderr: errs + unfinished(res, spec.Timeout)}, nil
}

// unfinished says, as a shell would, why a command did not end by itself: there is no other place
// for it in the answer.
func unfinished(res proc.Result, timeout time.Duration) string {
	switch {
	case res.TimedOut:
		return fmt.Sprintf("timed out after %v\n", timeout)
	case res.Signal != "":
		return "ended by " + res.Signal + "\n"
	}
	return ""
}

// run runs a command to its end, and returns what it printed.
func (l local) run(ctx context.Context, spec proc.Spec) (res proc.Result, stdout, stderr string) {
	var out [2]capped
	res = l.r.spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) { out[stream].add(b) })
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

// gitTime is how long one run of git may take.
const gitTime = 30 * time.Second

var errNoRemote = errors.New("no remote branch is known")

// DiffToRemote compares a working tree with the newest commit of its own history
// that a remote has. Nothing is fetched.
func (l local) DiffToRemote(ctx context.Context, cwd string) (mcpserver.RemoteDiff, error) {
	dir := l.r.place(cwd)
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
	res, out, errs := l.run(ctx, spec)
	switch {
	case res.Err != nil:
		return "", fmt.Errorf("git %s: %w", args[0], res.Err)
	case res.ExitCode < 0 || res.ExitCode > fine:
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(errs))
	}
	return out, nil
}

// SavedConfig reads what the configuration file says now.
func (l local) SavedConfig() (mcpserver.SavedConfig, error) {
	saved := mcpserver.SavedConfig{Profiles: map[string]mcpserver.SavedProfile{}}
	file := filepath.Join(l.r.config.Home, config.FileName)
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

// Key gives the key of the provider that conversations begin with.
func (l local) Key() string {
	choice, err := l.r.models.choose("")
	if err != nil {
		return ""
	}
	return choice.Key.Reveal()
}
