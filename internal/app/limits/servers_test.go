package limits

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
)

func TestMCPServersThatAreAllowed(t *testing.T) {
	defs := map[string]config.MCPServer{
		"good":  {Command: "npx", Args: []string{"-y", "good"}},
		"args":  {Command: "npx", Args: []string{"-y", "evil"}},
		"any":   {Command: "tool", Args: []string{"-x"}},
		"other": {Command: "npx"},
		"far":   {URL: "https://good.example/mcp"},
		"near":  {URL: "https://evil.example/mcp"},
		"off":   {Command: "x", Enabled: new(false)},
	}
	all, err := limitsFrom(t, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, warnings := all.Servers.Allow(defs); len(got) != len(defs) || warnings != nil {
		t.Errorf("without limits: %v, %v", got, warnings)
	}
	l, err := limitsFrom(t, `
[mcp_servers]
good.identity = { command = "npx", args = ["-y", "good"] }
args.identity = { command = "npx", args = ["-y", "good"] }
any.identity = { command = "tool" }
far.identity = { url = "https://good.example/mcp" }
near.identity = { url = "https://good.example/mcp" }
`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, warnings := l.Servers.Allow(defs)
	var names, left []string
	for name := range got {
		names = append(names, name)
	}
	for _, w := range warnings {
		left = append(left, strings.Fields(w.Text)[3])
	}
	slices.Sort(names)
	if strings.Join(names, " ") != "any far good" || strings.Join(left, " ") != "args near other" {
		t.Errorf("allowed %v, warned of %v", names, left)
	}
	none, err := limitsFrom(t, "[mcp_servers]\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := none.Servers.Allow(defs); len(got) != 0 {
		t.Errorf("an empty table allows %v", got)
	}
	for _, wrong := range []string{"[mcp_servers.x]\n", "[mcp_servers.x.identity]\ncommand=\"a\"\nurl=\"b\"\n", "[mcp_servers.x.identity]\nprogram=\"a\"\n"} {
		if _, err := limitsFrom(t, wrong, Options{}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
