package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

const skipRepoFlag = "skip-git-repo-check"

var errNoRepo = errors.New("not in a git repository")

// guard refuses a turn in a directory without version control, as programs
// written for Codex expect. A flag lets it run all the same, and so does a
// directory that the configuration trusts. The demo model does only what the user types.
// To resume is guarded too, so that whoever needed the flag is told to give it again.
func (f *execFlags) guard(cfg *config.Config, s p.Settings, o *exec.Options) error {
	o.ResumeFlags = resumeFlags(cfg, s)
	if o.ResumeFlags == "" || f.skipRepo || f.typed.Bypass {
		return nil
	}
	return &exitError{
		code: exitFailed, err: fmt.Errorf("%s is %w", s.Cwd, errNoRepo),
		hint: "--" + skipRepoFlag + " runs without one",
	}
}

// resumeFlags are what a turn with these settings needs to be let run, if anything.
func resumeFlags(cfg *config.Config, s p.Settings) string {
	if s.Provider == config.Demo || inRepo(s.Cwd) || trusts(cfg, s.Cwd) {
		return ""
	}
	return "--" + skipRepoFlag
}

// inRepo reports whether a directory is in the working tree of a git
// repository. In a worktree or a submodule .git is a file.
func inRepo(dir string) bool {
	for d := range above(dir) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return true
		}
	}
	return false
}

// trusts reports whether the configuration trusts a directory, or the nearest
// one above it of which it says something.
func trusts(cfg *config.Config, dir string) bool {
	level := map[string]string{}
	for name, l := range cfg.Projects {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			name = real
		}
		level[filepath.Clean(name)] = l
	}
	for d := range above(dir) {
		if l, ok := level[d]; ok {
			return l == "trusted"
		}
	}
	return false
}

// above yields a directory and those that it is in.
func above(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(dir) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
		}
	}
}
