package applypatch

import (
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
		if err := replaceLink(home, self, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// replaceLink makes link point to target. Others may do the same at the same time, commands may be using it, and
// sandboxes that are being made look for links in the home, but not in its directory for temporary files.
func replaceLink(home, target, link string) error {
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	temporary := filepath.Join(home, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(temporary, "link-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fresh := filepath.Join(dir, filepath.Base(link))
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}
