package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// kebab and snake are how tools spell their arguments.
func kebab(name string) string { return spell(name, '-') }
func snake(name string) string { return spell(name, '_') }

func spell(name string, sep rune) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteRune(sep)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// camel is the one spelling of a name.
func camel(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// withSettings adds a request for settings to the arguments of a tool, as it spells them. Any spelling is understood.
func (t tool) withSettings(spelling func(string) string) tool {
	own := t.schema["properties"].(map[string]any)
	settings := jsonrpc.SchemaOf(reflect.TypeFor[app.SettingsRequest]())["properties"].(map[string]any)
	for name, s := range settings {
		if _, ok := own[spelling(name)]; !ok {
			own[spelling(name)] = s
		}
	}
	unknown := t.unknown
	t.unknown = func(arguments json.RawMessage) []string {
		return slices.DeleteFunc(unknown(arguments), func(name string) bool { return settings[camel(name)] != nil })
	}
	return t
}

// settings is the request for settings in the arguments of a tool.
func (in callParams) settings() (app.SettingsRequest, error) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(in.Arguments, &given) // it was an object
	spelled := map[string]json.RawMessage{}
	for name, value := range maps.All(given) {
		spelled[camel(name)] = value
	}
	arguments, err := json.Marshal(spelled)
	if err != nil {
		return app.SettingsRequest{}, err
	}
	var w app.SettingsRequest
	return w, jsonrpc.Decode(arguments, &w)
}

// create begins a conversation.
func (s *Server) create(ctx context.Context, w app.SettingsRequest) (*conversation, p.Settings, error) {
	settings, remarks, err := s.o.Settings(w)
	if err != nil {
		return nil, settings, requestError(err.Error())
	}
	s.remark(ctx, remarks)
	id, err := s.o.Engine.Create(ctx, settings)
	if err != nil {
		return nil, settings, err
	}
	c := s.remember(id)
	s.known.put(id, c)
	return c, settings, nil
}

// change is what a request changes about a conversation that there is already; nil if
// nothing.
func (s *Server) change(ctx context.Context, now p.Settings, w app.SettingsRequest) (*p.Overrides, error) {
	if reflect.DeepEqual(w, app.SettingsRequest{}) { // as most: the configuration need not be read
		return nil, nil
	}
	over, remarks, err := s.o.Change(now, w)
	if err != nil {
		return nil, requestError(err.Error())
	}
	s.remark(ctx, remarks)
	if reflect.DeepEqual(over, p.Overrides{}) {
		return nil, nil
	}
	return &over, nil
}
