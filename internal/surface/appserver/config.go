package appserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

func (c *conn) configRead(_ context.Context, _ *jsonrpc.Request, in wire.ConfigRead) (wire.ConfigAnswer, error) {
	dir := cmp.Or(c.s.absolute(in.Cwd), c.s.o.Cwd)
	view, err := c.s.o.Local.ViewConfig(dir)
	if err != nil {
		return wire.ConfigAnswer{}, refuse("%v", err)
	}
	out := wire.ConfigAnswer{Config: map[string]any{}, Origins: map[string]wire.ConfigLayer{}}
	layers := layersOf(view)
	for _, s := range view.Settings {
		if s.Ineffective {
			continue
		}
		nest(out.Config, s.Path, settingValue(s))
		if name, ok := layerName(s); ok {
			i := slices.IndexFunc(layers, func(l wire.ConfigLayer) bool { return l.Name == name })
			out.Origins[s.Key] = wire.ConfigLayer{Name: name, Version: layers[i].Version}
		}
	}
	if view.Trust != "" {
		nest(out.Config, []string{"projects", dir, "trust_level"}, view.Trust)
	}
	if in.IncludeLayers {
		out.Layers = layers
	}
	return out, nil
}

// settingValue is the value of a setting as clients know it.
func settingValue(s app.ConfigSetting) any {
	if policy, ok := s.Value.(string); ok && s.Key == "approval_policy" {
		return items.Approval(p.ApprovalPolicy(policy))
	}
	return s.Value
}

// nest sets a value in tables below tables.
func nest(table map[string]any, path []string, value any) {
	for _, part := range path[:len(path)-1] {
		below, ok := table[part].(map[string]any)
		if !ok {
			below = map[string]any{}
			table[part] = below
		}
		table = below
	}
	table[path[len(path)-1]] = value
}

// layerName is where a setting comes from, false if it has its default.
func layerName(s app.ConfigSetting) (wire.LayerName, bool) {
	switch {
	case s.Source.Kind == app.FromDefault:
		return wire.LayerName{}, false
	case s.Source.Kind == app.FromProfile && s.Source.File != "":
		return wire.LayerName{Type: "user", File: s.Source.File, Profile: s.Source.Name}, true
	case s.Source.Kind == app.FromFile:
		return wire.LayerName{Type: "user", File: s.Source.File}, true
	}
	return wire.LayerName{Type: "sessionFlags"}, true
}

// layersOf are the places that settings in force come from, the strongest first.
func layersOf(view app.ConfigView) []wire.ConfigLayer {
	var layers []wire.ConfigLayer
	sorted := slices.Clone(view.Settings)
	slices.SortStableFunc(sorted, func(a, b app.ConfigSetting) int { return cmp.Compare(b.Source.Kind, a.Source.Kind) })
	for _, s := range sorted {
		name, ok := layerName(s)
		if !ok || s.Ineffective {
			continue
		}
		i := slices.IndexFunc(layers, func(l wire.ConfigLayer) bool { return l.Name == name })
		if i < 0 {
			i = len(layers)
			layers = append(layers, wire.ConfigLayer{Name: name, Config: map[string]any{}})
		}
		nest(layers[i].Config, s.Path, settingValue(s))
	}
	for i := range layers {
		layers[i].Version = checksum(layers[i].Config)
	}
	return layers
}

func checksum(values any) string {
	text, _ := json.Marshal(values) // texts, numbers and lists: cannot fail
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c *conn) configBatchWrite(_ context.Context, _ *jsonrpc.Request, in wire.ConfigWrite) (wire.ConfigWritten, error) {
	return c.saveConfig(in.FilePath, in.Edits...)
}

func (c *conn) configValueWrite(_ context.Context, _ *jsonrpc.Request, in wire.ConfigValueWrite) (wire.ConfigWritten, error) {
	return c.saveConfig(in.FilePath, in.ConfigEdit)
}

// saveConfig changes the user's configuration file.
func (c *conn) saveConfig(file string, in ...wire.ConfigEdit) (wire.ConfigWritten, error) {
	var edits []app.ConfigEdit
	for _, e := range in {
		switch e.Value.(type) {
		case nil, string:
		default:
			return wire.ConfigWritten{}, badParams("%s: only a text or null can be written", e.KeyPath)
		}
		edits = append(edits, app.ConfigEdit{Path: strings.Split(e.KeyPath, "."), Value: e.Value})
	}
	view, err := c.s.o.Local.ViewConfig(c.s.o.Cwd)
	if err != nil {
		return wire.ConfigWritten{}, refuse("%v", err)
	}
	if file != "" && file != view.File {
		return wire.ConfigWritten{}, refuse("only the user's configuration file can be written")
	}
	saved, err := c.s.o.Local.SaveConfig(edits...)
	if err != nil {
		return wire.ConfigWritten{}, refuse("%v", err)
	}
	return wire.ConfigWritten{Status: "ok", Version: checksum(in), FilePath: saved}, nil
}

func (c *conn) requirementsRead(context.Context, *jsonrpc.Request, wire.None) (wire.Requirements, error) {
	modes, policies := c.s.o.Local.Allowed()
	if modes == nil && policies == nil {
		return wire.Requirements{}, nil
	}
	out := &wire.Allowed{}
	for _, mode := range modes {
		out.Sandbox = append(out.Sandbox, string(mode))
	}
	for _, policy := range policies {
		if policy != p.ApprovalOnFailure { // unknown to clients, and whoever allows it allows on-request
			out.Approval = append(out.Approval, string(policy))
		}
	}
	return wire.Requirements{Requirements: out}, nil
}

func (c *conn) profileList(context.Context, *jsonrpc.Request, wire.Anything) (wire.Profiles, error) {
	allowed, _ := c.s.o.Local.Allowed()
	profile := func(id, description string) wire.Profile {
		return wire.Profile{ID: id, Description: description, Allowed: allowed == nil || slices.Contains(allowed, modes[id])}
	}
	return wire.Profiles{Data: []wire.Profile{
		profile(":read-only", "Reads files; asks before anything else"),
		profile(":workspace", "Writes in the working directory; asks before anything else"),
		profile(":danger-full-access", "No sandbox: only where nothing can be damaged"),
	}}, nil
}
