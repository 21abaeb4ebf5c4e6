package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A directory that is made for a conversation needs no trust; what the configuration says of the sandbox counts all the same.
func TestMadeDirectoryIsWritten(t *testing.T) {
	for _, test := range []struct {
		text string
		made bool
		want p.SandboxMode
	}{
		{"", false, p.SandboxReadOnly},
		{"", true, p.SandboxWorkspaceWrite},
		{"sandbox_mode = \"read-only\"\n", true, p.SandboxReadOnly},
	} {
		home := t.TempDir()
		t.Setenv("FERMATA_HOME", home)
		t.Setenv("OPENAI_API_KEY", "none")
		if err := os.WriteFile(filepath.Join(home, config.FileName), []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Open(t.Context(), Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		a.MadeCwd = test.made
		s, err := a.NewSettings(a.Config.ExecSettings)
		if err != nil || s.Sandbox.Mode != test.want {
			t.Errorf("%q, made %v: %s, %v; want %s", test.text, test.made, s.Sandbox.Mode, err, test.want)
		}
		a.Close()
	}
}
