//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/secrets"
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

// A repository must not choose which files of the user's go to a service.
func TestInstructionsThatLeadElsewhere(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/sub/AGENTS.md": "sub", "secret": "key", "home/": "", "dotfiles/agents": "mine"})
	for link, target := range map[string]string{"repo/AGENTS.md": "../secret", "home/AGENTS.md": "../dotfiles/agents"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	docs, warnings := Instructions(filepath.Join(root, "home"), filepath.Join(root, "repo/sub"), 100)
	if docs.Text != "mine"+projectSeparator+"sub" {
		t.Errorf("got %q", docs.Text)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "repo/AGENTS.md: is left out: it is a link to a file outside of the project") {
		t.Errorf("warnings %v", warnings)
	}
	dir := tree(t, map[string]string{"a/": ""}) // no repository
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "a/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if docs, warnings := Instructions(dir, filepath.Join(dir, "a"), 100); docs.Text != "" || len(warnings) != 1 {
		t.Errorf("a device: %q, %v", docs.Text, warnings)
	}
}

// A file of the project that fermata has registered as secret is not sent, whatever it is called.
func TestInstructionsThatAreSecret(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/token": "sesame", "home/": ""})
	if err := os.Symlink("token", filepath.Join(root, "repo/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if docs, _ := Instructions(filepath.Join(root, "home"), filepath.Join(root, "repo"), 100); docs.Text != "sesame" {
		t.Fatalf("before it is registered: %q", docs.Text)
	}
	if err := secrets.Home(filepath.Join(root, "home")).Register(filepath.Join(root, "repo/token")); err != nil {
		t.Fatal(err)
	}
	if docs, warnings := Instructions(filepath.Join(root, "home"), filepath.Join(root, "repo"), 100); docs.Text != "" || len(warnings) != 1 {
		t.Errorf("got %q, %v", docs.Text, warnings)
	}
}

// A file system that does not answer does not hold up the start.
func TestInstructionsThatAreSlow(t *testing.T) {
	root := tree(t, map[string]string{"AGENTS.md": "x", "repo/.git/": "", "repo/AGENTS.md": "x", "repo/a/AGENTS.md": "x", "repo/a/b/AGENTS.md": "x"})
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		defer close(hung)
		r := docReader{late: make(chan struct{}), open: func(string, func(string) error) (*os.File, error) {
			<-hung
			return nil, os.ErrNotExist
		}}
		time.AfterFunc(slowest, func() { close(r.late) })
		began := time.Now()
		docs, warnings := r.all(root, filepath.Join(root, "repo/a/b"), 100, []string{instructionsName})
		if docs.Text != "" || len(warnings) != 4 || time.Since(began) != slowest {
			t.Errorf("%q, %v after %v", docs.Text, warnings, time.Since(began))
		}
	})
}
