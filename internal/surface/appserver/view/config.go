// Package view puts what the application knows of the machine into the form that clients know, and what clients send into the words of the engine.
package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// Config is the configuration for a directory, with the places that settings come from.
func Config(in app.ConfigView, dir string) wire.ConfigAnswer {
	out := wire.ConfigAnswer{Config: map[string]any{}, Origins: map[string]wire.ConfigLayer{}}
	layers := layersOf(in.Settings)
	for _, s := range in.Settings {
		if s.Ineffective {
			continue
		}
		nest(out.Config, s.Path, settingValue(s))
		if name, ok := layerName(s); ok {
			i := slices.IndexFunc(layers, func(l wire.ConfigLayer) bool { return l.Name == name })
			out.Origins[s.Key] = wire.ConfigLayer{Name: name, Version: layers[i].Version}
		}
	}
	if in.Trust != "" {
		nest(out.Config, []string{"projects", dir, "trust_level"}, in.Trust)
	}
	out.Layers = layers
	return out
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
func layersOf(settings []app.ConfigSetting) []wire.ConfigLayer {
	var layers []wire.ConfigLayer
	sorted := slices.Clone(settings)
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
		layers[i].Version = Checksum(layers[i].Config)
	}
	return layers
}

// Checksum is a version of some values.
func Checksum(values any) string {
	text, _ := json.Marshal(values) // texts, numbers and lists: cannot fail
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
