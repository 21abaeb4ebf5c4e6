//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstructionsThatCannotBeRead(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/AGENTS.md/": "", "repo/a/": "", "repo/a/b/AGENTS.md": "bad \xff utf-8"})
	pipe := filepath.Join(root, "repo/a/AGENTS.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	docs, warnings := Instructions(filepath.Join(root, "nowhere"), filepath.Join(root, "repo/a/b"), 100)
	if docs.Text != "bad ? utf-8" {
		t.Errorf("got %q", docs.Text)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, strings.ReplaceAll(w.String(), root, "ROOT"))
	}
	want := []string{
		"ROOT/repo/AGENTS.md: is left out: not a regular file",
		"ROOT/repo/a/AGENTS.md: is left out: not a regular file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
