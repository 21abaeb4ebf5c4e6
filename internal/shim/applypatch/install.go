package applypatch

import (
	"fmt"
	"os"
	"path/filepath"
)

var names = []string{"apply_patch", "applypatch"}

// Install makes a directory with the command under its names, as links to this
// program, and returns it. It is in fermata's home, where confined commands cannot
// change it.
func Install(home string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, "commands")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := replaceLink(self, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// replaceLink makes link point to target. Other processes may do the same at the same
// time, and commands may be using it.
func replaceLink(target, link string) error {
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
	_ = os.Remove(fresh) // of a process that had our number and died
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}
