package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// forged is a name that prints over itself, begins a line of its own, and steers the terminal.
const forged = "bad\rgood\nforged line" + hostile

// hostileServer is an MCP server whose tools and title are called so. In JSON a carriage return is two characters.
const hostileServer = `while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"FORGED","title":"FORGED","version":"FORGED"}}}' ;;
*'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"t","title":"FORGED","description":"FORGED","inputSchema":{"type":"object"}},{"name":"FORGED","description":"FORGED","inputSchema":{"type":"object"}}]}}' ;;
esac
done
`

// rudeServer is one that refuses to serve, for a reason that looks like another line.
const rudeServer = `read -r line
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32603,"message":"FORGED"}}'
cat >/dev/null
`

// Names that browsers and MCP servers give themselves are shown whole and on one line, on a terminal and in a pipe.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	escaped := strings.NewReplacer("\r", `\r`, "\n", `\n`, "\x1b", `\u001b`, "\a", `\u0007`, "\u009b", `\u009b`, "\u202e", `\u202e`).Replace(forged)
	pl.file("server.sh", strings.ReplaceAll(hostileServer, "FORGED", escaped))
	pl.must("mcp", "add", "sly", "--", "sh", filepath.Join(pl.work, "server.sh"))
	pl.file("rude.sh", strings.ReplaceAll(rudeServer, "FORGED", escaped))
	pl.must("mcp", "add", "rude", "--", "sh", filepath.Join(pl.work, "rude.sh"))
	sessions := access.Open(filepath.Join(pl.dir, "home", "fermata"))
	code, err := sessions.NewLink(access.Everything)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.Login(code, access.Client{Name: forged}); err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`\r+[^\r\n]`)
	for _, args := range [][]string{{"serve", "--list"}, {"web", "--list"}, {"mcp", "test", "sly"}, {"doctor"}, {"mcp", "test"}} {
		piped, _, _ := pl.run(args...)
		for where, out := range map[string]string{"on a terminal": pl.onScreen(args...), "in a pipe": piped} {
			if out == "" || steers(out) || bare.MatchString(out) || strings.Contains(out, "\nforged") {
				t.Errorf("%q %s prints %q", args, where, out)
			}
		}
		if args[0] != "doctor" {
			contains(t, strings.Join(args, " "), piped, "bad␍good␊forged line")
		}
	}
}
