package setupcmd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
)

// A pattern allows no tool: it is refused rather than remembered. One that was remembered can be revoked.
func TestToolPermissionTakesNoPattern(t *testing.T) {
	home := t.TempDir()
	t.Setenv("FERMATA_HOME", home)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("[mcp_servers.ev]\ncommand = \"ev\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := app.Load(app.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		use, tool string
		ok        bool
	}{{"allow", "ev.read", true}, {"allow", "ev.*", false}, {"allow", "ev.re?d", false}, {"allow", "other.read", false}, {"revoke", "ev.*", true}} {
		_, err := permission(l, tt.use, []string{tt.tool}, true)
		var exit *cli.ExitError
		if (err == nil) != tt.ok || err != nil && (!errors.As(err, &exit) || exit.Code != cli.ExitUsage) {
			t.Errorf("%s %s: %v", tt.use, tt.tool, err)
		}
	}
}
