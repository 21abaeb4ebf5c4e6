package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A configuration that cannot be read may name NATS servers: no command takes files for the store then.
func TestSettingsOfAFileThatCannotBeRead(t *testing.T) {
	if s, err := Settings(t.TempDir()); err != nil || s.URL != "" {
		t.Errorf("without a file: %+v, %v", s, err)
	}
	for name, damage := range map[string]func(file string) error{
		"a directory":             func(file string) error { return os.Mkdir(file, 0o700) },
		"a link to itself":        func(file string) error { return os.Symlink(config.FileName, file) },
		"a file without a reader": func(file string) error { return os.WriteFile(file, []byte("[store]\nurl = \"nats://x\"\n"), 0) },
	} {
		home := t.TempDir()
		if err := damage(filepath.Join(home, config.FileName)); err != nil {
			t.Fatal(err)
		}
		s, err := Settings(home)
		if err == nil && s.URL == "nats://x" {
			continue // root reads every file
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if name == "a directory" && !errors.Is(err, regular.ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
