package config

import (
	"path/filepath"

	"github.com/fermata-agent/fermata/protocol"
)

// The values of projects.*.trust_level.
const (
	Trusted   = "trusted"
	Untrusted = "untrusted"
)

// TrustLevel returns what the configuration says of a directory or, if nothing, of the nearest
// one above it of which it says something: Trusted, Untrusted, or nothing.
func (c *Config) TrustLevel(dir string) string {
	if len(c.Projects) == 0 {
		return ""
	}
	level := map[string]string{}
	for name, l := range c.Projects {
		level[realDir(name)] = l
	}
	for d := range Above(dir) {
		if l, ok := level[d]; ok {
			return l
		}
	}
	return ""
}

// Allowed returns how commands begin that may run in a directory unasked: what the
// configuration says of it and of those above it.
func (c *Config) Allowed(dir string) []Allowed {
	var list []Allowed
	for name, commands := range c.AllowedCommands {
		for d := range Above(dir) {
			if d == realDir(name) {
				list = append(list, Allowed{Dir: name, Commands: commands})
			}
		}
	}
	return list
}

// Allowed are the commands that may run unasked in a directory, as the file has them.
type Allowed struct {
	Dir      string
	Commands []string
}

// TrustedSandbox is what commands may touch in a trusted directory: they may write to it,
// unless the configuration says what they may.
func (c *Config) TrustedSandbox() protocol.SandboxPolicy {
	if c.Source("sandbox_mode").Kind == FromDefault {
		return c.Sandbox(protocol.SandboxWorkspaceWrite)
	}
	return c.Sandbox(c.SandboxMode)
}

// Above yields a directory and those that it is in.
func Above(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(dir) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
		}
	}
}

// realDir returns the one name that a directory has.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Clean(dir)
}
