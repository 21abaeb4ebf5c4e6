package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A link in a home is found also beside directories in which there is much, and those that grow with use cost nothing.
func TestLinksInALargeHome(t *testing.T) {
	home := t.TempDir()
	first := filepath.Join(home, "aaa", "deep", "0")
	link := func(name string) string {
		name = filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.Symlink("/elsewhere", name)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	want := []string{link("config.toml"), link("rules/mine.rules")}
	for _, dir := range bulky {
		link(filepath.Join(dir, "x"))
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(first), 0o700), os.WriteFile(first, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := os.Link(first, fmt.Sprintf("%s.%d", first, i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := linksIn(home); !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
}
