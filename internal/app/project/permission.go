package project

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app/configfile"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/protocol"
)

// A Permission lets commands that begin with certain words run unasked, and outside the sandbox, or
// a tool of an MCP server be called unasked.
type Permission struct {
	Dir    string           // where: in this directory and below; empty is everywhere
	Prefix []string         // the words of commands
	Tool   protocol.MCPTool // if there are no words
}

// String returns the words as one would type them, or the server and its tool.
func (p Permission) String() string {
	if len(p.Prefix) == 0 {
		return p.Tool.Server + "." + p.Tool.Name
	}
	text, err := policy.JoinWords(p.Prefix)
	if err != nil {
		return strings.Join(p.Prefix, " ")
	}
	return text
}

// Offer returns the permission that a person can be offered who is asked about a
// command in a directory. It is false if there is none that would be narrow enough.
func Offer(command []string, dir string) (Permission, bool) {
	prefix, ok := policy.OfferPrefix(command)
	return Permission{Dir: Dir(dir), Prefix: prefix}, ok
}

// OfferTool returns the permission that a person can be offered who is asked about a tool of an MCP
// server in a directory. It holds everywhere if the server is the person's own.
func (s *Store) OfferTool(t protocol.MCPTool, dir string) Permission {
	if _, own := s.now().MCPServers[t.Server]; own {
		return Permission{Tool: t}
	}
	return Permission{Dir: Dir(dir), Tool: t}
}

// Permissions are those that hold in a directory: commands, then tools.
func (s *Store) Permissions(dir string) []Permission {
	cfg := s.now()
	return append(commands(cfg, dir), tools(cfg, dir)...)
}

func commands(cfg *config.Config, dir string) []Permission {
	var list []Permission
	for _, a := range cfg.Allowed(dir) {
		for _, c := range a.Commands {
			if words, ok := policy.SplitWords(c); ok { // else the user has just changed the file
				list = append(list, Permission{Dir: a.Dir, Prefix: words})
			}
		}
	}
	return sorted(list)
}

func tools(cfg *config.Config, dir string) []Permission {
	var list []Permission
	for server, def := range cfg.MCPServers {
		for name, a := range def.ToolApproval {
			if a == config.MCPAllow {
				list = append(list, Permission{Tool: protocol.MCPTool{Server: server, Name: name}})
			}
		}
	}
	project := Dir(dir)
	for _, text := range cfg.ProjectMCPTools[project] {
		if server, name, ok := strings.Cut(text, "."); ok {
			list = append(list, Permission{Dir: project, Tool: protocol.MCPTool{Server: server, Name: name}})
		}
	}
	return sorted(list)
}

func sorted(list []Permission) []Permission {
	slices.SortStableFunc(list, func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.String(), b.String()))
	})
	return list
}

// FileRules are the rules of the files beside the configuration.
func (s *Store) FileRules() []policy.PrefixRule { return slices.Clone(s.file) }

// Rules are what decides about commands in a directory.
func (s *Store) Rules(dir string) []policy.PrefixRule {
	rules := slices.Clone(s.file)
	for _, p := range commands(s.now(), realDir(dir)) {
		rules = append(rules, policy.NewPrefix(p.Prefix))
	}
	return rules
}

// ToolApproval is what the configuration says about a tool of an MCP server, empty if nothing.
// What a project's own file says about its servers does not count.
func (s *Store) ToolApproval(project string, t protocol.MCPTool) config.MCPApproval {
	cfg := s.now()
	if project != "" {
		if slices.Contains(cfg.ProjectMCPTools[project], Permission{Tool: t}.String()) {
			return config.MCPAllow
		}
		return ""
	}
	def := cfg.MCPServers[t.Server]
	return cmp.Or(def.ToolApproval[t.Name], def.Approval)
}

// Allow remembers a permission. It holds at once, also in other processes.
func (s *Store) Allow(p Permission) error {
	if len(p.Prefix) == 0 && p.Dir == "" {
		return s.edit(func(saved *config.Config) ([]configfile.Edit, error) {
			if _, ok := saved.MCPServers[p.Tool.Server]; !ok {
				return nil, fmt.Errorf("there is no MCP server %s in the configuration file", p.Tool.Server)
			}
			return []configfile.Edit{{Path: ownTool(p.Tool), Value: string(config.MCPAllow)}}, nil
		})
	}
	text, err := p.entry()
	if err != nil {
		return err
	}
	return s.edit(func(saved *config.Config) ([]configfile.Edit, error) {
		list := p.list(saved)
		if slices.Contains(list, text) {
			return nil, nil
		}
		return []configfile.Edit{{Path: p.path(), Value: append(slices.Clone(list), text)}}, nil
	})
}

// ErrNoPermission says that there is no such permission to revoke.
var ErrNoPermission = errors.New("no such permission")

// Revoke forgets a permission. It ends at once, also in other processes.
func (s *Store) Revoke(p Permission) error {
	return s.edit(func(saved *config.Config) ([]configfile.Edit, error) {
		if len(p.Prefix) == 0 && p.Dir == "" {
			return revokeOwn(saved, p)
		}
		list := p.list(saved)
		rest := slices.DeleteFunc(slices.Clone(list), p.is)
		if len(rest) == len(list) {
			return nil, fmt.Errorf("%w: %s in %s", ErrNoPermission, p, p.Dir)
		}
		edit := configfile.Edit{Path: p.path(), Value: rest}
		if len(rest) == 0 {
			edit.Value = nil
		}
		return []configfile.Edit{edit}, nil
	})
}

// revokeOwn takes back a permission for a tool of the person's own server.
func revokeOwn(saved *config.Config, p Permission) ([]configfile.Edit, error) {
	if saved.MCPServers[p.Tool.Server].ToolApproval[p.Tool.Name] != config.MCPAllow {
		return nil, fmt.Errorf("%w: %s", ErrNoPermission, p)
	}
	return []configfile.Edit{{Path: ownTool(p.Tool)}}, nil
}

// FindTool returns the permission for a tool, as server.tool, that holds in a directory.
func (s *Store) FindTool(text, dir string) (Permission, error) {
	list := tools(s.now(), dir)
	i := slices.IndexFunc(list, func(p Permission) bool { return p.String() == text })
	if i < 0 {
		return Permission{}, fmt.Errorf("%w: %s", ErrNoPermission, text)
	}
	return list[i], nil
}

// ownTool is where the file says whether a tool of the person's own server may be called.
func ownTool(t protocol.MCPTool) []string {
	return []string{"mcp_servers", t.Server, "tools", t.Name, "approval"}
}

// path is where the file has the list that the permission is in.
func (p Permission) path() []string {
	if len(p.Prefix) == 0 {
		return []string{"projects", p.Dir, "allowed_mcp_tools"}
	}
	return []string{"projects", p.Dir, "allowed_commands"}
}

// list is that list.
func (p Permission) list(saved *config.Config) []string {
	if len(p.Prefix) == 0 {
		return saved.ProjectMCPTools[p.Dir]
	}
	return saved.AllowedCommands[p.Dir]
}

// entry is how the permission is written there.
func (p Permission) entry() (string, error) {
	if len(p.Prefix) == 0 {
		return p.String(), nil
	}
	return policy.JoinWords(p.Prefix)
}

// is reports whether an entry of the list is this permission.
func (p Permission) is(entry string) bool {
	if len(p.Prefix) == 0 {
		return entry == p.String()
	}
	words, ok := policy.SplitWords(entry)
	return ok && slices.Equal(words, p.Prefix)
}
