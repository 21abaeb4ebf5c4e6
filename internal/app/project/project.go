// Package project remembers what a person has said of directories: whether they are trusted,
// and which commands may run and which tools of MCP servers may be called in them without a question. It is kept in the configuration
// file, in the table of the project; the rules of Codex are read too.
package project

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/app/configfile"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A Trust is what a person has said of a directory.
type Trust string

// What there is to say. The zero value: nothing yet.
const (
	Trusted   Trust = config.Trusted
	Untrusted Trust = config.Untrusted
)

// A Store is what the configuration remembers of directories: whether they are trusted, and what
// may be done in them without a question. It notices when another process changes
// the file. Its methods may be called by any goroutine.
type Store struct {
	home string
	load config.Options
	file []policy.PrefixRule // of the rules in the home

	mu      sync.Mutex
	config  *config.Config // guarded by mu
	changed fileState      // guarded by mu; of the file that config was read from
}

// fileState is by which a changed file is recognized.
type fileState struct {
	size int64
	time time.Time
}

// Open returns what a configuration says of directories. The warnings are about
// rules that have no effect.
func Open(o config.Options, cfg *config.Config) (*Store, []config.Warning, error) {
	s := &Store{home: cfg.Home, load: o, config: cfg}
	s.changed = stateOf(s.fileName())
	for dir, commands := range cfg.AllowedCommands {
		for _, c := range commands {
			if _, ok := policy.SplitWords(c); !ok {
				return nil, nil, fmt.Errorf("%s: projects.%q.allowed_commands: %q is not the beginning of one command, such as \"go test\"", s.fileName(), dir, c)
			}
		}
	}
	var warnings []config.Warning
	var err error
	s.file, warnings, err = readRules(filepath.Join(s.home, "rules"))
	return s, warnings, err
}

// readRules reads the files of rules in a directory, in the form that Codex uses.
func readRules(dir string) ([]policy.PrefixRule, []config.Warning, error) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.rules")) // the pattern is right
	var rules []policy.PrefixRule
	var warnings []config.Warning
	for _, name := range names {
		text, err := regular.ReadFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("read rules: %w", err)
		}
		list, unknown, err := policy.ParseRules(string(text))
		if err != nil {
			return nil, nil, fmt.Errorf("read rules: %s: %w", name, err)
		}
		rules = append(rules, list...)
		for _, u := range slices.Compact(slices.Sorted(slices.Values(unknown))) {
			warnings = append(warnings, config.Warning{Problem: config.Problem{Source: config.Source{Kind: config.FromFile, File: name}, Text: u + " is not supported and has no effect"}})
		}
	}
	return rules, warnings, nil
}

func stateOf(file string) fileState {
	info, err := os.Stat(file)
	if err != nil {
		return fileState{}
	}
	return fileState{info.Size(), info.ModTime()}
}

func (s *Store) fileName() string { return filepath.Join(s.home, config.FileName) }

// now returns the configuration as the file has it now. A file that is wrong changes nothing.
func (s *Store) now() *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := stateOf(s.fileName())
	if state == s.changed {
		return s.config
	}
	if cfg, _, err := config.Load(s.load); err == nil {
		s.config, s.changed = cfg, state
	}
	return s.config
}

// Dir returns the directory that trust and permissions are remembered for: the root of the
// git repository that dir is in, else dir itself.
func Dir(dir string) string {
	for d := range config.Above(dir) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
	}
	return dir
}

// InRepo reports whether a directory is in the working tree of a git repository. In a
// worktree or a submodule .git is a file.
func InRepo(dir string) bool {
	_, err := os.Lstat(filepath.Join(Dir(dir), ".git"))
	return err == nil
}

// Trust returns what is known of a directory, or of the nearest one above it.
func (s *Store) Trust(dir string) Trust { return Trust(s.now().TrustLevel(dir)) }

// SetTrust remembers whether the project that dir is in is trusted.
func (s *Store) SetTrust(dir string, t Trust) error {
	edit := configfile.Edit{Path: []string{"projects", Dir(dir), "trust_level"}, Value: string(t)}
	if t == "" {
		edit.Value = nil
	}
	return s.edit(func(*config.Config) ([]configfile.Edit, error) { return []configfile.Edit{edit}, nil })
}

// edit changes the file and takes up what it says then.
func (s *Store) edit(decide func(saved *config.Config) ([]configfile.Edit, error)) error {
	if err := configfile.Update(s.home, decide); err != nil {
		return err
	}
	s.mu.Lock()
	s.changed = fileState{}
	s.mu.Unlock()
	s.now()
	return nil
}

// realDir resolves symbolic links if dir exists.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
