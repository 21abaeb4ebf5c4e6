package policy

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Grants are the commands that a person has approved for the conversation, each
// with its directory: "make clean" approved here is not approved elsewhere. A
// value never changes, so it may be shared; the zero value holds nothing. It can
// be saved as JSON.
type Grants struct {
	keys map[string]struct{} // never written to after it is made
}

// With returns g and one command more. An empty command is never granted.
func (g Grants) With(argv []string, cwd string) Grants {
	if len(argv) == 0 || g.Has(argv, cwd) {
		return g
	}
	keys := make(map[string]struct{}, len(g.keys)+1)
	maps.Copy(keys, g.keys)
	keys[grantKey(argv, cwd)] = struct{}{}
	return Grants{keys}
}

// Answered returns the grants after a person has answered a question about a
// command. Only "approved for the session" adds one; a plain "approved" is over
// with the call that asked, whatever it asked.
func (g Grants) Answered(d protocol.Decision, argv []string, cwd string) Grants {
	if d != protocol.ApprovedForSession {
		return g
	}
	return g.With(argv, cwd)
}

// AnsweredTool is Answered for a tool of an MCP server. What is granted is the tool,
// whatever its arguments.
func (g Grants) AnsweredTool(d protocol.Decision, t protocol.MCPTool) Grants {
	return g.Answered(d, toolKey(t), "")
}

// HasTool reports whether a tool of an MCP server was granted.
func (g Grants) HasTool(t protocol.MCPTool) bool { return g.Has(toolKey(t), "") }

// toolKey stands for a tool as if it were a command. No command is like it: those
// have a directory.
func toolKey(t protocol.MCPTool) []string { return []string{"mcp", t.Server, t.Name} }

// Has reports whether exactly this command was granted in this directory.
func (g Grants) Has(argv []string, cwd string) bool {
	if len(g.keys) == 0 {
		return false
	}
	_, ok := g.keys[grantKey(argv, cwd)]
	return ok
}

// MarshalJSON returns the grants as a list.
func (g Grants) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Sorted(maps.Keys(g.keys)))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *Grants) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	g.keys = nil
	for _, key := range list {
		if g.keys == nil {
			g.keys = make(map[string]struct{}, len(list))
		}
		g.keys[key] = struct{}{}
	}
	return nil
}

// Len returns the number of grants.
func (g Grants) Len() int { return len(g.keys) }

// grantKey gives lengths, since arguments may contain whatever would separate them.
func grantKey(argv []string, cwd string) string {
	var b strings.Builder
	for _, s := range append([]string{filepath.Clean(cwd)}, argv...) {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}
