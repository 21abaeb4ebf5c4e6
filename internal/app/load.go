package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/app/keys"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
)

// Options are what the command line says.
type Options struct {
	Dir        string   // the directory to work in; empty is the current one
	Profile    string   // of the configuration
	Overrides  []string // of the configuration, each key=value
	Flags      config.Flags
	Strict     bool // a warning is an error
	Limits     limits.Options
	Snapshots  bool   // record what commands change in a git repository
	Version    string // of this program
	Serve      bool   // this process owns conversations for others: see App.Serve
	Detach     bool   // another process owns them, so that turns outlive this one
	Detachable bool   // the setting detach counts
	Client     string // what this process is to others that it joins: the command's name
	Member     Member // how it takes part in a fleet
	Watch      TurnWatch

	// Warn is called by Open for each warning, also if it fails, and later for each model of
	// which nothing is known, then by any goroutine. May be nil.
	Warn func(config.Warning)
}

// Loaded is the configuration for some options.
type Loaded struct {
	Options  config.Options // its Cwd is the directory to work in
	Config   *config.Config
	Projects *project.Store // trust and permissions
	Keys     *keys.Store    // of model services
	Logins   *keys.Logins   // to MCP servers
	Warnings []config.Warning

	version string
}

// Load reads the configuration. The warnings are there also with an error.
func Load(o Options) (Loaded, error) { return load(o, os.Getenv) }

func load(o Options, getenv func(string) string) (Loaded, error) {
	cwd, err := Workdir(o.Dir)
	if err != nil {
		return Loaded{}, err
	}
	l := Loaded{version: o.Version}
	l.Options = config.Options{Cwd: cwd, Env: getenv, Profile: o.Profile, Overrides: o.Overrides, Flags: o.Flags}
	l.Config, l.Warnings, err = config.Load(l.Options)
	if err != nil {
		return l, configError(err)
	}
	l.Keys, l.Logins = keys.Open(l.Config.Home), keys.OpenLogins(l.Config.Home)
	var more []config.Warning
	l.Projects, more, err = project.Open(l.Options, l.Config)
	l.Warnings = append(l.Warnings, more...)
	if err != nil {
		return l, err
	}
	if n := countWrong(l.Warnings); o.Strict && n > 0 {
		return l, &Error{Err: fmt.Errorf("%s in the configuration", humanize.Count(n, "warning")), Hint: "leave out --strict-config to start all the same"}
	}
	return l, nil
}

// countWrong counts the warnings of which a user should know before anything is run.
func countWrong(warnings []config.Warning) (n int) {
	for _, w := range warnings {
		if !w.Foreign {
			n++
		}
	}
	return n
}

// Models are those of the configuration.
func (l Loaded) Models() *Models {
	return &Models{load: l.Options, config: l.Config, version: l.version, env: l.Keys.Env(l.Options.Env)}
}

// HomeHint says what to do when there is no place for conversations.
const HomeHint = "set HOME, or FERMATA_HOME to where conversations shall be kept"

// configError gives an error of the configuration its hint.
func configError(err error) error {
	e := &Error{Err: err}
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong) && wrong.Source.Kind >= config.FromOverride: // the command line says it
		e.Usage = true
	case errors.Is(err, config.ErrNoProvider):
		e.Hint = "fermata exec --demo PROMPT tries it without a model"
	case errors.Is(err, config.ErrNoHome):
		e.Hint = HomeHint
	}
	return e
}

// ErrNoWorkdir means that the directory that this process was started in was removed.
var ErrNoWorkdir = errors.New("the working directory no longer exists")

// Workdir is the directory to work in, with symbolic links resolved, so that a
// directory has one name.
func Workdir(dir string) (string, error) {
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", &Error{Err: ErrNoWorkdir, Hint: "go to another one, or name one with -C"}
		}
		dir = wd
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{Err: fmt.Errorf("there is no directory %s", dir), Hint: "name the directory to work in with -C", Usage: true}
	}
	if err != nil {
		return "", usage("work in %s: %w", dir, err)
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() {
		return "", usage("work in %s: %w", dir, unix.ENOTDIR)
	}
	return real, nil
}

// CheckResumed reports that the directory of a conversation that is to be resumed no longer exists.
func CheckResumed(dir string) error {
	if _, err := os.Stat(dir); dir == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil // what else may be wrong with it, commands report
	}
	return &Error{
		Err:  fmt.Errorf("the working directory of this conversation no longer exists: %s", dir),
		Hint: "-C DIR resumes it in another directory",
	}
}

// Tilde shortens a path in the user's home directory, for people.
func Tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
