package config

import (
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"
)

// inServer is a key of an MCP server. The names that set gets are those below the
// server.
func inServer(field string, kind kind, set func(s *MCPServer, names []string, v any)) key {
	k := newKey("mcp_servers.*."+field, kind).onlyGlobal()
	k.put = func(c *Config, names []string, v any) {
		if c.MCPServers == nil {
			c.MCPServers = map[string]MCPServer{}
		}
		s := c.MCPServers[names[0]]
		set(&s, names[1:], v)
		c.MCPServers[names[0]] = s
	}
	return k
}

// serverField is a key of an MCP server whose value is stored as it is.
func serverField[T any](field string, kind kind, at func(*MCPServer) *T) key {
	return inServer(field, kind, func(s *MCPServer, _ []string, v any) { *at(s) = v.(T) })
}

// serverEntry is a key of an MCP server that is an entry of a map.
func serverEntry[T any](field string, kind kind, at func(*MCPServer) *map[string]T) key {
	return inServer(field, kind, func(s *MCPServer, names []string, v any) {
		m := maps.Clone(*at(s))
		if m == nil {
			m = map[string]T{}
		}
		m[names[0]] = v.(T)
		*at(s) = m
	})
}

// Values are the values that the server is given: its secrets, and what it takes from an environment.
func (s MCPServer) Values(getenv func(string) string) map[string]string {
	m := map[string]string{}
	for name, v := range s.Env {
		m["env."+name] = v.Reveal()
	}
	for name, v := range s.HTTPHeaders {
		m["header."+name] = v.Reveal()
	}
	if getenv == nil {
		return m
	}
	for _, name := range s.Variables() {
		m["variable."+name] = getenv(name)
	}
	return m
}

// Variables are the names of the variables of our environment whose values the server gets.
func (s MCPServer) Variables() []string { return slices.Concat(s.EnvVars, s.TokenVariables()) }

// TokenVariables are those of them that are sent as headers, so that they are taken to hold keys.
func (s MCPServer) TokenVariables() []string {
	names := slices.Collect(maps.Values(s.EnvHTTPHeaders))
	if s.BearerTokenEnvVar != "" {
		names = append(names, s.BearerTokenEnvVar)
	}
	return names
}

const maxSeconds = 24 * 60 * 60

func serverTime(field string, unit time.Duration, at func(*MCPServer) *time.Duration) key {
	k := inServer(field, wholeKind, func(s *MCPServer, _ []string, v any) { *at(s) = time.Duration(v.(int64)) * unit })
	return k.within(1, maxSeconds*int64(time.Second/unit))
}

var mcpApprovals = []string{string(MCPAllow), string(MCPAsk), string(MCPDeny)}

// serverKeys are those of MCP servers.
func serverKeys() []key {
	return []key{
		serverField("command", textKind, func(s *MCPServer) *string { return &s.Command }),
		serverField("args", listKind, func(s *MCPServer) *[]string { return &s.Args }),
		serverEntry("env.*", secretKind, func(s *MCPServer) *map[string]Secret { return &s.Env }),
		serverField("env_vars", listKind, func(s *MCPServer) *[]string { return &s.EnvVars }),
		serverField("cwd", pathKind, func(s *MCPServer) *string { return &s.Cwd }),
		serverField("url", urlKind, func(s *MCPServer) *string { return &s.URL }),
		serverField("bearer_token_env_var", textKind, func(s *MCPServer) *string { return &s.BearerTokenEnvVar }),
		serverEntry("http_headers.*", secretKind, func(s *MCPServer) *map[string]Secret { return &s.HTTPHeaders }),
		serverEntry("env_http_headers.*", textKind, func(s *MCPServer) *map[string]string { return &s.EnvHTTPHeaders }),
		serverTime("startup_timeout_sec", time.Second, func(s *MCPServer) *time.Duration { return &s.StartupTimeout }),
		serverTime("startup_timeout_ms", time.Millisecond, func(s *MCPServer) *time.Duration { return &s.StartupTimeout }),
		serverTime("tool_timeout_sec", time.Second, func(s *MCPServer) *time.Duration { return &s.ToolTimeout }),
		inServer("enabled", boolKind, func(s *MCPServer, _ []string, v any) { s.Enabled = new(v.(bool)) }),
		serverField("enabled_tools", listKind, func(s *MCPServer) *[]string { return &s.EnabledTools }),
		serverField("disabled_tools", listKind, func(s *MCPServer) *[]string { return &s.DisabledTools }),
		serverField("required", boolKind, func(s *MCPServer) *bool { return &s.Required }),
		inServer("approval", enumKind, func(s *MCPServer, _ []string, v any) { s.Approval = MCPApproval(v.(string)) }).oneOf(mcpApprovals...),
		inServer("tools.*.approval", enumKind, func(s *MCPServer, names []string, v any) {
			s.ToolApproval = maps.Clone(s.ToolApproval)
			if s.ToolApproval == nil {
				s.ToolApproval = map[string]MCPApproval{}
			}
			s.ToolApproval[names[0]] = MCPApproval(v.(string))
		}).oneOf(mcpApprovals...),
	}
}

// serverName is what the name of an MCP server may be: it becomes a part of the
// names of its tools.
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// ServerNameOK reports whether an MCP server can have a name.
func ServerNameOK(name string) bool { return serverName().MatchString(name) }

// checkServers leaves out what cannot be started, rather than failing: such an
// entry may be meant for another version.
func (l *loader) checkServers(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.MCPServers)) {
		s, wrong := c.MCPServers[name], ""
		switch {
		case !ServerNameOK(name):
			wrong = "is left out: the name of a server has letters, digits, _ and - only"
		case s.Command == "" && s.URL == "":
			wrong = "has neither a command nor a url and is left out"
		case s.Command != "" && s.URL != "":
			wrong = "has both a command and a url; the url is ignored"
		default:
			continue
		}
		if s.Command == "" || !ServerNameOK(name) {
			delete(c.MCPServers, name)
		}
		about := Problem{Source: l.sourceUnder("mcp_servers", name), Key: formatKey([]string{"mcp_servers", name}), Text: wrong}
		l.warnings = append(l.warnings, Warning{Problem: about})
	}
}
