package servers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/app/configfile"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/config/programs"
)

// A Named server is one that a file of a project names.
type Named struct {
	Name    string
	Def     config.MCPServer // its Project is set
	File    string
	Digest  string // of the definition, as the file has it
	Trusted bool   // the person trusts the project and this definition

	Written   config.MCPServer // as the file has it: variables in it are not replaced by their values, which may be secrets
	Variables []string         // of our environment that it, or who it is reached at, gets to know
}

// maxFile is how long a project's file may be.
const maxFile = 1 << 20

// OfProject are the servers that the files of a project name: .mcp.json, then
// .fermata/config.toml, which counts if both name one. A file that cannot be read
// is a warning.
func OfProject(root string, cfg *config.Config, getenv func(string) string) ([]Named, []config.Warning) {
	all, warnings := readFiles(root, cfg, getenv)
	found := map[string]Named{}
	for _, n := range all {
		found[n.Name] = n
	}
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return list, warnings
}

// Guarded lists the files that commands must not change, so that a trusted definition stays what the person
// has seen: the programs of trusted servers, and the files that name them. A server counts also where
// another file names one like it.
func Guarded(root string, cfg *config.Config, getenv func(string) string, dir string) []string {
	var list []string
	all, _ := readFiles(root, cfg, getenv)
	for _, n := range all {
		if n.Trusted {
			list = append(append(list, n.File), Programs(n.Def, dir)...)
		}
	}
	return list
}

// Programs lists the files that are executed when a server is started in a directory, as far as its
// definition names them.
func Programs(def config.MCPServer, dir string) []string {
	if def.Command == "" || def.Enabled != nil && !*def.Enabled {
		return nil
	}
	return programs.Of(append([]string{def.Command}, def.Args...), cmp.Or(def.Cwd, dir))
}

// readFiles reads the files of a project, the one that counts last.
func readFiles(root string, cfg *config.Config, getenv func(string) string) (all []Named, warnings []config.Warning) {
	for _, read := range []func(string, func(string) string) ([]Named, error){fromJSON, fromTOML} {
		list, err := read(root, getenv)
		if err != nil {
			warnings = append(warnings, warning("MCP servers of the project are not used: %v", err))
		}
		for _, n := range list {
			if !config.ServerNameOK(n.Name) {
				warnings = append(warnings, warning("%s: the MCP server %q is left out: the name of a server has letters, digits, _ and - only", n.File, n.Name))
				continue
			}
			n.Def.Project, n.Def.Enabled, n.Def.Required = root, nil, false
			n.Def.Approval, n.Def.ToolApproval = "", nil // see project.Store.ToolApproval
			n.Trusted = cfg.TrustLevel(root) == config.Trusted && cfg.ProjectMCPServers[config.ProjectServer(root, n.Name)] == n.Digest
			all = append(all, n)
		}
	}
	return all, warnings
}

// Add adds the trusted servers of a project to those of the configuration, which count
// if both have one of a name.
func Add(own map[string]config.MCPServer, named []Named) (map[string]config.MCPServer, []config.Warning) {
	all := maps.Clone(own)
	if all == nil {
		all = map[string]config.MCPServer{}
	}
	var warnings []config.Warning
	for _, n := range named {
		_, exists := own[n.Name]
		switch {
		case exists:
		case n.Trusted:
			all[n.Name] = n.Def
		default:
			warnings = append(warnings, warning("%s names the MCP server %s, which is not used: fermata mcp trust %s shows and allows it", n.File, n.Name, n.Name))
		}
	}
	return all, warnings
}

// Trust remembers that the person trusts a definition.
func Trust(cfg *config.Config, n Named) error {
	return configfile.Apply(cfg.Home, configfile.Edit{Path: []string{"projects", n.Def.Project, "mcp_servers", n.Name}, Value: n.Digest})
}

func digest(parts ...any) string {
	text, _ := json.Marshal(parts) // decoded before: cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// readFile reads a file below a project's root. A link that leads out of it is not followed.
func readFile(root, name string) ([]byte, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no file, or too long", filepath.Join(root, name))
	}
	return dir.ReadFile(name)
}

// fromTOML reads .fermata/config.toml. Only its MCP servers count.
func fromTOML(root string, getenv func(string) string) ([]Named, error) {
	name := filepath.Join(".fermata", config.FileName)
	text, err := readFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	home := filepath.Join(root, ".fermata")
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(root, name), err)
	}
	text, err = toml.Marshal(map[string]any{"mcp_servers": all["mcp_servers"]})
	if err != nil || all["mcp_servers"] == nil {
		return nil, err
	}
	cfg, err := config.LoadText(config.Options{Home: home, Cwd: root, Env: getenv}, text)
	if err != nil {
		return nil, err
	}
	var list []Named
	for name, def := range cfg.MCPServers {
		env := map[string]string{}
		for k, v := range def.Env {
			env[k] = v.Reveal()
		}
		headers := map[string]string{}
		for k, v := range def.HTTPHeaders {
			headers[k] = v.Reveal()
		}
		list = append(list, Named{Name: name, Def: def, Written: def, Variables: sorted(def.Variables()), File: filepath.Join(home, config.FileName), Digest: digest(
			name, def.Command, def.Args, env, def.EnvVars, def.Cwd, def.URL, def.BearerTokenEnvVar, headers, def.EnvHTTPHeaders)})
	}
	return list, nil
}

// fromJSON reads .mcp.json, in the form that other programs use.
func fromJSON(root string, getenv func(string) string) ([]Named, error) {
	const name = ".mcp.json"
	text, err := readFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	file := filepath.Join(root, name)
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var list []Named
	for name, raw := range in.Servers {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		def, err := definition(raw, getenv)
		if err != nil {
			return nil, fmt.Errorf("%s: mcpServers.%s: %w", file, name, err)
		}
		n := Named{Name: name, Def: def, File: file, Digest: digest(name, compact.String())}
		n.Written, _ = definition(raw, nil) // it is one
		_, _ = definition(raw, func(name string) string {
			n.Variables = append(n.Variables, name)
			return ""
		})
		n.Variables = sorted(n.Variables)
		list = append(list, n)
	}
	return list, nil
}

// sorted are the names without those that occur again.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// definition reads a definition. Without getenv its variables stay as they are.
func definition(raw json.RawMessage, getenv func(string) string) (config.MCPServer, error) {
	var in struct {
		Type    string
		Command string
		Args    []string
		Env     map[string]string
		Cwd     string
		URL     string
		Headers map[string]string
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return config.MCPServer{}, err
	}
	switch {
	case in.Type == "sse":
		return config.MCPServer{}, errors.New("the transport sse is not supported: use http")
	case (in.Command == "") == (in.URL == ""):
		return config.MCPServer{}, errors.New("needs either a command or a url")
	}
	expand := func(s string) string { return s }
	if getenv != nil {
		expand = func(s string) string { return expandVariables(s, getenv) }
	}
	def := config.MCPServer{Command: expand(in.Command), URL: expand(in.URL), Cwd: expand(in.Cwd)}
	for _, a := range in.Args {
		def.Args = append(def.Args, expand(a))
	}
	def.Env, def.HTTPHeaders = secrets(in.Env, expand), secrets(in.Headers, expand)
	return def, nil
}

func secrets(in map[string]string, expand func(string) string) map[string]config.Secret {
	m := map[string]config.Secret{}
	for k, v := range in {
		m[k] = config.NewSecret(expand(v))
	}
	return m
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`) })

// expandVariables replaces ${NAME} and ${NAME:-default}.
func expandVariables(s string, getenv func(string) string) string {
	return variable().ReplaceAllStringFunc(s, func(m string) string {
		parts := variable().FindStringSubmatch(m)
		if v := getenv(parts[1]); v != "" {
			return v
		}
		return parts[3]
	})
}
