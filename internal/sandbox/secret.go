package sandbox

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/fermata-agent/fermata/internal/sandbox/alias"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A hidden file must not be readable under any of its names. Symbolic links are resolved,
// other mounts of the same directory are found by package alias. The other names of a hard link
// cannot be found; the user is warned of them.

// hiddenFrom lists the secrets of homes that exist, and others that are named, under all
// names that they really have. The notes say which can be read all the same.
func hiddenFrom(homes, others []string) (list, notes []string) {
	for _, name := range secretNames(homes, others) {
		if real := resolved(name); real != "" {
			list = appendNew(list, real)
		}
	}
	for _, name := range list {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			notes = append(notes, fmt.Sprintf("%s holds a secret and has %d names (hard links): commands can read it by another of them", name, st.Nlink))
		}
	}
	return alias.Names(list), notes
}

// secretNames lists what is secret in homes, and others.
func secretNames(homes, others []string) []string {
	var names []string
	for _, home := range homes {
		names = append(names, secrets.Home(home).Files()...)
	}
	return slices.Concat(names, others)
}

// OffLimits reports whether name is, lies in, or leads to a secret of one of the homes or one
// of the others: such files are for no tool to read, and for no command but
// one with full access. What does not exist is judged by what does of its path.
func OffLimits(homes []string, name string, others ...string) bool {
	real := resolvedParts(name)
	if real == "" {
		return false
	}
	var existing []string
	for _, home := range homes {
		if home = resolved(home); home != "" {
			existing = appendNew(existing, home)
		}
	}
	return secrets.Among(real, secretNames(existing, others))
}
