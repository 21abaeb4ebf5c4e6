package runcmd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestGuard(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"repo/.git", "repo/a/b", "bare", "out/side"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "out"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	trust := func(of ...string) map[string]string {
		levels := map[string]string{}
		for i := 0; i < len(of); i += 2 {
			levels[filepath.Join(dir, of[i])] = of[i+1]
		}
		return levels
	}
	for _, c := range []struct {
		name     string
		cwd      string
		provider string
		flags    execFlags
		projects map[string]string
		refused  bool
	}{
		{name: "outside", cwd: "out/side", refused: true},
		{name: "top of a repository", cwd: "repo"},
		{name: "below the top", cwd: "repo/a/b"},
		{name: "beside a repository", cwd: "bare", refused: true},
		{name: "flag", cwd: "bare", flags: execFlags{skipRepo: true}},
		{name: "bypass", cwd: "bare", flags: execFlags{RunFlags: cli.RunFlags{Typed: config.Flags{Bypass: true}}}},
		{name: "full auto says nothing of it", cwd: "bare", flags: execFlags{RunFlags: cli.RunFlags{Typed: config.Flags{FullAuto: true}}}, refused: true},
		{name: "demo", cwd: "bare", provider: config.Demo},
		{name: "trusted", cwd: "out/side", projects: trust("out/side", "trusted")},
		{name: "trusted above", cwd: "out/side", projects: trust("out", "trusted")},
		{name: "trusted by another name", cwd: "out/side", projects: trust("link/side", "trusted")},
		{name: "the nearest counts", cwd: "out/side", projects: trust("out", "trusted", "out/side", "untrusted"), refused: true},
		{name: "trusted elsewhere", cwd: "out", projects: trust("out/side", "trusted", "gone", "trusted"), refused: true},
	} {
		s := p.Settings{Cwd: filepath.Join(dir, c.cwd), Provider: c.provider}
		var o exec.Options
		err := c.flags.guard(&config.Config{Projects: c.projects}, s, &o)
		if needed := c.refused || c.flags.skipRepo || c.flags.Typed.Bypass; needed != (o.ResumeFlags == "--skip-git-repo-check") {
			t.Errorf("%s: to resume it: %q", c.name, o.ResumeFlags)
		}
		if refused := errors.Is(err, errNoRepo); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
