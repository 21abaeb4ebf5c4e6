package runcmd

import (
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

const skipRepoFlag = "skip-git-repo-check"

var errNoRepo = errors.New("not in a git repository")

// guard refuses a turn in a directory without version control, as programs
// written for Codex expect. A flag lets it run all the same, and so does a
// directory that the configuration trusts. The demo model does only what the user types.
// Resuming is guarded too: whoever needed the flag gives it again.
func (f *execFlags) guard(cfg *config.Config, s p.Settings, o *exec.Options) error {
	o.ResumeFlags = resumeFlags(cfg, s)
	if o.ResumeFlags == "" || f.skipRepo || f.Typed.Bypass || f.fleet.dir != "" || f.fleet.git.URL != "" {
		return nil
	}
	return &cli.ExitError{
		Code: cli.ExitFailed, Err: fmt.Errorf("%s is %w", s.Cwd, errNoRepo),
		Hint: "--" + skipRepoFlag + " runs without one",
	}
}

// resumeFlags are what a turn with these settings needs to be let run, if anything.
func resumeFlags(cfg *config.Config, s p.Settings) string {
	if s.Provider == config.Demo || project.InRepo(s.Cwd) || cfg.TrustLevel(s.Cwd) == config.Trusted {
		return ""
	}
	return "--" + skipRepoFlag
}
